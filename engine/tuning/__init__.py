"""What the commands share that fit a model's tables: their samples, what they measure, and the choice. Import the module you need."""
