// A run as a Chrome trace, which Perfetto opens: one process per method, one thread per lane. Knows no DOM.

const MICRO = 1e6;

export function chromeTrace(run, labelOf) {
  const events = [];
  run.methods.forEach((method, index) => {
    const pid = index + 1;
    events.push({ ph: "M", name: "process_name", pid, tid: 0, args: { name: labelOf(method.name) } });
    run.lanes.forEach((lane, tid) => events.push({ ph: "M", name: "thread_name", pid, tid: tid + 1, args: { name: lane } }));
    for (const span of method.spans) {
      const args = { layer: span.layer };
      if (span.size_bytes) args.size_bytes = span.size_bytes;
      events.push({
        ph: "X", cat: "fusion", name: span.layer < 0 ? span.stage : `${span.stage} ${span.layer}`, pid, tid: run.lanes.indexOf(span.lane) + 1,
        ts: span.start_s * MICRO, dur: (span.end_s - span.start_s) * MICRO, args,
      });
    }
  });
  const { model, device, created, mode } = run.provenance;
  return { traceEvents: events, displayTimeUnit: "ms", otherData: { model, device, created, mode, question: run.question } };
}
