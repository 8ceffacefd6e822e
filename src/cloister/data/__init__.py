"""Data in its engine: schemas, hierarchies, tables and the frequency tables that every method works on."""
