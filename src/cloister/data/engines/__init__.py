"""The engines that hold data: DuckDB (embedded, the default), PostgreSQL and Apache Spark, behind one narrow seam."""
