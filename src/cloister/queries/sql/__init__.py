"""SQL: from the text of a query to a question, and to how its answer is shown."""

from cloister.queries.sql.compiler import Compiled, compile_condition, compile_select, compile_sql
from cloister.queries.sql.presentation import Presentation

__all__ = ["Compiled", "Presentation", "compile_condition", "compile_select", "compile_sql"]
