"""What all measurements by training have in common: trainings that go on, their records, tables, pictures."""
