//! `SHOW TABLES` in an order that people can read: the tables of traces, views over them, then the other schemas.
//!
//! DataFusion lists tables as its hash maps hold them (55.2), in another order each time. `SHOW TABLES` becomes a query with an order.

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::parser::Parser;

use crate::sql::dialect::TqDialect;

const TABLES: &str = "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables \
     ORDER BY CASE table_schema WHEN 'main' THEN 0 WHEN 'docs' THEN 2 WHEN 'information_schema' THEN 3 ELSE 1 END, \
     table_schema, table_type = 'VIEW', table_name";

/// The query that answers `SHOW TABLES`; `None` for other statements, also for `SHOW TABLES` with options, which DataFusion refuses.
pub(super) fn tables(statement: &Statement) -> Result<Option<Statement>> {
    if !matches!(statement, Statement::ShowTables { .. }) || statement.to_string() != "SHOW TABLES" {
        return Ok(None);
    }
    Ok(Parser::parse_sql(&TqDialect, TABLES)?.pop())
}
