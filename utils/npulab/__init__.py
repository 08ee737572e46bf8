"""What the notebooks import: choice of backend, run records, pictures, rooflines and exercise checks."""
