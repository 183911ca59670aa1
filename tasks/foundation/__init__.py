"""What every stage stands on. Knows neither Prefect nor any stage."""
