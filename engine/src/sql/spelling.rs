//! Other spellings of what DataFusion (55.2) knows, and what it passes over without a word or takes for something else.
//!
//! ```text
//! FROM t                          SELECT * FROM t
//! t SEMI JOIN u, t ANTI JOIN u    t LEFT SEMI JOIN u, t LEFT ANTI JOIN u
//! FETCH FIRST 5 ROWS ONLY         LIMIT 5
//! GROUP BY ()                     GROUP BY GROUPING SETS (())
//! GROUPING SETS (ROLLUP (a, b))   GROUPING SETS ((a, b), (a), ()): DataFusion looks for a function `rollup`
//! ROLLUP (a, (b, c)), ROLLUP (1)  GROUPING SETS ((a, b, c), (a), ()), ROLLUP (a)
//! a LIKE ANY (ARRAY[x, y])        (a LIKE x OR a LIKE y), and with ALL: AND
//! string_agg(a, b) OVER (… ROWS …) array_to_string(array_agg(a) OVER (… ROWS …), b)
//! variance(a), every(a)           var(a), bool_and(a); and ceiling(a): ceil(a), div(a, b): a // b
//! ~a                              (a # -1)
//! a[2:], a[:2]                    a[2:2147483647], a[1:2]
//! substring(a from 'x(.)')        (regexp_match(a, 'x(.)'))[1]
//! DISTINCT ON (a, b) ORDER BY b   DISTINCT ON (b, a) … ORDER BY b: DataFusion wants one order of the keys
//! x::json                         CAST(x AS VARCHAR): a text is JSON as it stands
//! SELECT DISTINCT ON (1) a        SELECT DISTINCT ON (a) a
//! a LIKE '!%' ESCAPE '!'          a LIKE '\%'
//! SELECT * ILIKE 'x%'             an error: all columns would be answered
//! t JOIN u                        an error: all pairs would be
//! a SIMILAR TO 'x%'               an error: it would be a regular expression, found anywhere in `a`
//! SELECT … FOR UPDATE             an error: nothing would be locked
//! GROUP BY a WITH ROLLUP          an error: the rows of totals would be missing
//! PREWHERE, CONNECT BY            an error: all rows would be answered
//! FORMAT x, SETTINGS x, FOR XML   an error: it would be as if it were not there
//! any_value(x ORDER BY y)         an error: the order would not matter
//! busy(start, duration)           an error: a duration is no end
//! to_char(t, 'YYYY-MM-DD')        an error: a format without % is answered as it stands
//! args #>> '{a,b}'                args -> 'a' ->> 'b': a text was no path, but a key
//! INTERVAL '1 day 02:00'          INTERVAL '1 day 02 hours 00 minutes'
//! FROM t, LATERAL (…) l JOIN u …  FROM t CROSS JOIN LATERAL (…) l JOIN u …: DataFusion joins `l` with `u` first, where `t` is not known
//! SELECT 'a' 'b'                  an error: `b` would be a name
//! OVER (ORDER BY NULL …)          OVER (ORDER BY CAST(NULL AS BIGINT) …): RANGE n PRECEDING asks for a type that has distances
//! ```

use std::ops::ControlFlow;

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CaseWhen, CastKind, DataType, Distinct, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator,
    LimitClause, ObjectName, OrderByKind, Query, Select, SelectFlavor, SelectItem, SetExpr, Spanned, Subscript,
    TableFactor, TableWithJoins, UnaryOperator, Value, ValueWithSpan, WildcardAdditionalOptions, WindowFrame,
    WindowFrameBound, WindowType, visit_expressions,
};

use crate::sql::diagnostic::error_at;
use crate::sql::{decimals, dialect, frames, group_keys, interval_text, joined, shifts, times};

/// Rewrites the spellings of a SELECT itself, not of what stands within it.
pub(super) fn rewrite(select: &mut Select) -> Result<()> {
    if select.flavor == SelectFlavor::FromFirstNoSelect && select.projection.is_empty() {
        select.projection.push(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
    }
    one_chain(&mut select.from);
    for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
        join.join_operator = match &join.join_operator {
            JoinOperator::Semi(condition) => JoinOperator::LeftSemi(condition.clone()),
            JoinOperator::Anti(condition) => JoinOperator::LeftAnti(condition.clone()),
            _ => continue,
        };
    }
    for join in select.from.iter().flat_map(|from| &from.joins) {
        if let JoinOperator::Join(JoinConstraint::None) | JoinOperator::Inner(JoinConstraint::None) = join.join_operator
        {
            let hint =
                "say which rows belong together, `ON a.x = b.x` or `USING (x)`; `CROSS JOIN` pairs each row with all";
            return Err(error_at(join.relation.span(), "JOIN without ON or USING", hint));
        }
    }
    group_of_having(select);
    if let GroupByExpr::Expressions(groups, _) = &mut select.group_by {
        columns_of_groupings(groups, &select.projection);
        group_keys::one_name(groups, &select.from);
        groupings(groups)?;
    }
    positions(select)?;
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = &select.group_by;
    if let Some(modifier) = modifiers.first() {
        let hint = "`GROUP BY ROLLUP (a, b)`, `CUBE (a, b)` and `GROUPING SETS ((a), (b), ())` are";
        return Err(error_at(select.group_by.span(), format!("`GROUP BY … {modifier}` is not supported"), hint));
    }
    if let Some(condition) = &select.prewhere {
        return Err(error_at(condition.span(), "PREWHERE is not supported", "WHERE says the same"));
    }
    if !select.connect_by.is_empty() {
        let hint = "`ancestors(tasks)` and `descendants(tasks)` follow parents, and `WITH RECURSIVE` whatever there is";
        return Err(error_at(select.span(), "CONNECT BY is not supported", hint));
    }
    for item in &select.projection {
        if let SelectItem::ExprWithAlias { expr: Expr::Value(literal), alias } = item
            && matches!(literal.value, Value::SingleQuotedString(_))
            && alias.quote_style == Some('\'')
        {
            let hint = format!("`'a' || 'b'` is one text; a name stands in double quotes, `AS \"{}\"`", alias.value);
            return Err(error_at(alias.span, "a text beside a text", &hint));
        }
        let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else { continue };
        if options.opt_ilike.is_some() {
            return Err(error_at(
                item.span(),
                "`* ILIKE` is not supported",
                "name the columns, or leave some out: `* EXCEPT (a, b)`",
            ));
        }
    }
    Ok(())
}

/// A table that may speak of those before it is joined to them before it is joined to others. Joins that keep all rows of their right
/// side stay: the tables before would be within.
fn one_chain(from: &mut Vec<TableWithJoins>) {
    let speaks = |table: &TableFactor| match table {
        TableFactor::Derived { lateral, .. } => *lateral,
        TableFactor::Table { args, .. } => args.is_some(),
        TableFactor::Function { .. } | TableFactor::UNNEST { .. } => true,
        _ => false,
    };
    let keeps_left = |join: &Join| {
        use JoinOperator::{CrossJoin, Inner, Left, LeftOuter};
        let is_plain = |condition: &JoinConstraint| matches!(condition, JoinConstraint::On(_) | JoinConstraint::None);
        match &join.join_operator {
            JoinOperator::Join(on) | Inner(on) | Left(on) | LeftOuter(on) | CrossJoin(on) => is_plain(on),
            _ => false,
        }
    };
    let mut chains: Vec<TableWithJoins> = Vec::with_capacity(from.len());
    for next in std::mem::take(from) {
        let joins = &next.joins;
        let is_joined = !joins.is_empty()
            && (speaks(&next.relation) || joins.iter().any(|join| speaks(&join.relation)))
            && joins.iter().all(keeps_left);
        match chains.last_mut() {
            Some(before) if is_joined => {
                let join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
                before.joins.push(Join { relation: next.relation, global: false, join_operator });
                before.joins.extend(next.joins);
            }
            _ => chains.push(next),
        }
    }
    *from = chains;
}

/// Columns of a CUBE within GROUPING SETS: 2¹² groupings.
const CUBE: usize = 12;

/// DISTINCT ON in the order of ORDER BY, which may begin with its keys in any order. DISTINCT ordered by an expression that is one of its columns,
/// by the number of that column: DataFusion (55.2) looks for the columns within the expression.
pub(super) fn order_of_distinct(query: &mut Query) {
    let Some(OrderByKind::Expressions(order)) = query.order_by.as_mut().map(|order| &mut order.kind) else { return };
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let columns = &select.projection;
    let keys = match &mut select.distinct {
        Some(Distinct::On(keys)) => keys,
        Some(Distinct::Distinct) => {
            let is_column =
                |expr: &Expr| matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_));
            for key in order.iter_mut().filter(|key| !is_column(&key.expr)) {
                let is_this = |item: &SelectItem| match item {
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => *expr == key.expr,
                    _ => false,
                };
                if let Some(place) = columns.iter().position(is_this)
                    && columns[..place]
                        .iter()
                        .all(|item| !matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)))
                {
                    key.expr = Expr::value(Value::Number((place + 1).to_string(), false));
                }
            }
            return;
        }
        _ => return,
    };
    let meant = |key: &Expr| column_at(key, columns).unwrap_or(key).clone();
    // A position is that of a column here, and DataFusion compares the two.
    order.iter_mut().for_each(|key| key.expr = meant(&key.expr));
    let order: Vec<Expr> = order.iter().map(|key| key.expr.clone()).collect();
    keys.sort_by_cached_key(|key| {
        let key = meant(key);
        order.iter().position(|known| *known == key).unwrap_or(usize::MAX)
    });
}

/// `()` is a group of all rows, beside other keys it says nothing; ROLLUP and CUBE within GROUPING SETS are those groupings that they stand for.
fn groupings(groups: &mut Vec<Expr>) -> Result<()> {
    let is_empty = |expr: &Expr| matches!(expr, Expr::Tuple(parts) if parts.is_empty());
    if groups.iter().any(is_empty) {
        groups.retain(|expr| !is_empty(expr));
        if groups.is_empty() {
            groups.push(Expr::GroupingSets(vec![vec![]]));
        }
    }
    for group in groups.iter_mut() {
        let (Expr::Rollup(keys) | Expr::Cube(keys)) = &*group else { continue };
        let is_repeated = |at: usize| keys[..at].contains(&keys[at]);
        if keys.iter().all(|key| key.len() == 1) && !(1..keys.len()).any(is_repeated) {
            continue;
        }
        let sets = match group {
            Expr::Rollup(keys) => rolled_up(keys),
            _ if keys.len() > CUBE => {
                let hint = format!("{CUBE} is the limit; name the groupings that you want");
                return Err(error_at(group.span(), format!("more than {CUBE} columns in one CUBE"), &hint));
            }
            _ => cubed(keys),
        };
        *group = Expr::GroupingSets(sets);
    }
    for sets in groups.iter_mut().filter_map(|expr| if let Expr::GroupingSets(sets) = expr { Some(sets) } else { None })
    {
        let mut written_out = Vec::with_capacity(sets.len());
        for set in std::mem::take(sets) {
            match set.as_slice() {
                [Expr::Function(call)] => match keys_of(call) {
                    Some(("rollup", keys)) => written_out.extend(rolled_up(&keys)),
                    Some((_, keys)) if keys.len() > CUBE => {
                        let hint = format!("{CUBE} is the limit; name the groupings that you want");
                        return Err(error_at(call.name.span(), format!("more than {CUBE} columns in one CUBE"), &hint));
                    }
                    Some((_, keys)) => written_out.extend(cubed(&keys)),
                    None => written_out.push(set),
                },
                _ => written_out.push(set),
            }
        }
        *sets = written_out;
    }
    // A column that a set names twice is one.
    for set in groups
        .iter_mut()
        .flat_map(|group| if let Expr::GroupingSets(sets) = group { sets.as_mut_slice() } else { &mut [] })
    {
        let mut known: Vec<Expr> = Vec::with_capacity(set.len());
        for key in std::mem::take(set) {
            if !known.contains(&key) {
                known.push(key);
            }
        }
        *set = known;
    }
    Ok(())
}

/// `SELECT 1 FROM t HAVING true` is one group of all rows, though nothing says so.
fn group_of_having(select: &mut Select) {
    let calls = |expr: &Expr| match expr {
        Expr::Function(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    if let GroupByExpr::Expressions(groups, _) = &mut select.group_by
        && groups.is_empty()
        && select.having.is_some()
        && visit_expressions(&select.projection, calls).is_continue()
        && visit_expressions(&select.having, calls).is_continue()
    {
        groups.push(Expr::GroupingSets(vec![vec![]]));
    }
}

fn rolled_up(keys: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    (0..=keys.len()).rev().map(|first| keys[..first].concat()).collect()
}

fn cubed(keys: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    let chosen = |chosen: usize| {
        let with = |at: &usize| chosen & (1 << (keys.len() - 1 - at)) != 0;
        (0..keys.len()).filter(with).flat_map(|at| keys[at].clone()).collect()
    };
    (0..1_usize << keys.len()).rev().map(chosen).collect()
}

/// `ROLLUP (1)` is of the first column, as `GROUP BY 1` is; DataFusion takes the number for itself.
fn columns_of_groupings(groups: &mut [Expr], columns: &[SelectItem]) {
    for group in groups {
        let (Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets)) = group else { continue };
        for key in sets.iter_mut().flatten() {
            if let Some(column) = column_at(key, columns) {
                *key = column.clone();
            }
        }
    }
}

/// The column of SELECT that a number stands for, if it and those before it are written out.
fn column_at<'a>(key: &Expr, columns: &'a [SelectItem]) -> Option<&'a Expr> {
    let Expr::Value(literal) = key else { return None };
    let Value::Number(digits, _) = &literal.value else { return None };
    let place = digits.parse::<usize>().ok()?.checked_sub(1)?;
    let expr = |item: &'a SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    };
    let written: Option<Vec<&Expr>> = columns.get(..=place)?.iter().map(expr).collect();
    written?.pop()
}

/// `SELECT s, sum(b) AS b … ORDER BY sum(b)` is ordered by that column: within an expression, a name is that of a column of FROM, and
/// DataFusion (55.2) takes the alias for it.
pub(super) fn order_of_columns(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|order| &mut order.kind) else { return };
    let aliases = || {
        select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(&alias.value),
            _ => None,
        })
    };
    let is_alias = |name: &Ident| aliases().any(|alias| alias.eq_ignore_ascii_case(&name.value));
    let column = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) => Some(expr.clone()),
        _ => None,
    };
    let Some(columns) = select.projection.iter().map(column).collect::<Option<Vec<Expr>>>() else { return };
    for key in keys.iter_mut().filter(|_| !matches!(select.distinct, Some(Distinct::On(_)))) {
        if matches!(key.expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_)) {
            continue;
        }
        let names_one = visit_expressions(&key.expr, |expr| match expr {
            Expr::Identifier(name) if is_alias(name) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        if let (true, Some(at)) = (names_one.is_break(), columns.iter().position(|column| *column == key.expr)) {
            key.expr = Expr::Value(Value::Number((at + 1).to_string(), false).into());
        }
    }
}

/// `ORDER BY 1` of a grouped query, where the column is made of grouping columns and has no name: DataFusion (55.2) looks for it
/// among the columns that are grouped by.
pub(super) fn order_of_groups(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if groups.is_empty());
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|order| &mut order.kind) else { return };
    for key in keys.iter_mut().filter(|_| is_grouped && select.distinct.is_none()) {
        let is_named = |column: &&Expr| matches!(column, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        let is_aliased = |column: &Expr| {
            let of_alias = |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { expr, .. } if std::ptr::eq(expr, column));
            select.projection.iter().any(of_alias)
        };
        let column = column_at(&key.expr, &select.projection);
        if let Some(column) = column.filter(|column| !is_named(column) && !is_aliased(column)) {
            key.expr = column.clone();
        }
    }
}

/// The name and the keys of `ROLLUP (a, (b, c))` and CUBE, which the parser takes for a function there.
fn keys_of(call: &Function) -> Option<(&'static str, Vec<Vec<Expr>>)> {
    let name = ["rollup", "cube"].into_iter().find(|name| call.name.to_string().eq_ignore_ascii_case(name))?;
    let FunctionArguments::List(list) = &call.args else { return None };
    let key = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Tuple(parts))) => Some(parts.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Nested(inner))) => Some(vec![inner.as_ref().clone()]),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(key)) => Some(vec![key.clone()]),
        _ => None,
    };
    Some((name, list.args.iter().map(key).collect::<Option<_>>()?))
}

/// `DISTINCT ON (1)` is the first column, as in ORDER BY; DataFusion takes the number for itself.
fn positions(select: &mut Select) -> Result<()> {
    let Some(Distinct::On(keys)) = &mut select.distinct else { return Ok(()) };
    for key in keys {
        let Expr::Value(literal) = &*key else { continue };
        let Value::Number(digits, _) = &literal.value else { continue };
        let Some(column) = column_at(key, &select.projection) else {
            let message = format!("DISTINCT ON asks for column `{digits}`, which SELECT does not write out");
            return Err(error_at(
                literal.span,
                message,
                "positions count the columns of SELECT from 1; name the column",
            ));
        };
        *key = column.clone();
    }
    Ok(())
}

/// FETCH is LIMIT.
pub(super) fn fetch(query: &mut Query) -> Result<()> {
    let Some(fetch) = query.fetch.take() else { return Ok(()) };
    let rows = fetch.quantity.clone().unwrap_or_else(|| Expr::Value(Value::Number("1".to_owned(), false).into()));
    if fetch.with_ties || fetch.percent {
        let hint = "`SELECT * FROM (SELECT *, rank() OVER (ORDER BY x) AS place FROM t) WHERE place <= 5` has the ties";
        return Err(error_at(rows.span(), format!("`{fetch}` is not supported"), hint));
    }
    match &mut query.limit_clause {
        clause @ None => {
            *clause = Some(LimitClause::LimitOffset { limit: Some(rows), offset: None, limit_by: vec![] });
        }
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = Some(rows),
        Some(_) => return Err(error_at(rows.span(), "LIMIT and FETCH say the same", "keep one of them")),
    }
    Ok(())
}

/// Rows that an OFFSET leaves out of a query within another are told by its ORDER BY, which DataFusion (55.2) forgets where there is no
/// LIMIT.
pub(super) fn limit_for_offset(query: &mut Query) {
    if let (Some(_), Some(LimitClause::LimitOffset { limit: limit @ None, offset: Some(_), .. })) =
        (&query.order_by, &mut query.limit_clause)
    {
        *limit = Some(Expr::Value(Value::Number(i64::MAX.to_string(), false).into()));
    }
}

/// A pattern that is written out, with the only escape that DataFusion knows, `\`.
fn escaped(pattern: &mut Expr, escape: &mut Option<ValueWithSpan>) {
    let Some(Value::SingleQuotedString(character)) = escape.as_ref().map(|escape| &escape.value) else { return };
    let Expr::Value(literal) = pattern else { return };
    let Value::SingleQuotedString(text) = &mut literal.value else { return };
    if character.chars().count() > 1 {
        return;
    }
    let (mut rewritten, mut characters) = (String::new(), text.chars());
    while let Some(next) = characters.next() {
        let is_escape = character.starts_with(next);
        let meant = if is_escape { characters.next().unwrap_or(next) } else { next };
        // What is escaped stands for itself, and so does a `\` that is no escape.
        if meant == '\\' || (is_escape && ['%', '_'].contains(&meant)) {
            rewritten.push('\\');
        }
        rewritten.push(meant);
    }
    *text = rewritten;
    *escape = None;
}

/// `a LIKE ANY (ARRAY['x%', 'y%'])` is `a LIKE 'x%' OR a LIKE 'y%'`, and ALL asks for each.
fn any_or_all(expr: &mut Expr) -> Result<()> {
    let (Expr::Like { any, pattern, .. } | Expr::ILike { any, pattern, .. }) = &*expr else { return Ok(()) };
    let (patterns, is_any) = match pattern.as_ref() {
        list if *any => (list, true),
        Expr::Function(call) if call.name.to_string().eq_ignore_ascii_case("all") => match &call.args {
            FunctionArguments::List(list) => match list.args.as_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] => (list, false),
                _ => return Ok(()),
            },
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    let Some(patterns) = listed(patterns).filter(|patterns| !patterns.is_empty()) else {
        let hint =
            "`a LIKE ANY (ARRAY['x%', 'y%'])`; of patterns in rows: `EXISTS (SELECT 1 FROM t WHERE a LIKE t.pattern)`";
        return Err(error_at(patterns.span(), "LIKE takes patterns that are written out behind ANY and ALL", hint));
    };
    let one = |pattern: &Expr| {
        let mut one = expr.clone();
        if let Expr::Like { any, pattern: of_one, .. } | Expr::ILike { any, pattern: of_one, .. } = &mut one {
            (*any, **of_one) = (false, pattern.clone());
        }
        one
    };
    let op = if is_any { BinaryOperator::Or } else { BinaryOperator::And };
    let joined = |left, right| Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) };
    if let Some(chain) = patterns.iter().map(one).reduce(joined) {
        *expr = Expr::Nested(Box::new(chain));
    }
    Ok(())
}

fn listed(list: &Expr) -> Option<&[Expr]> {
    match list {
        Expr::Array(Array { elem, .. }) => Some(elem),
        Expr::Tuple(elements) => Some(elements),
        Expr::Nested(within) => listed(within),
        _ => None,
    }
}

/// `string_agg` in frames whose beginning moves, from which DataFusion (55.2) cannot take values back: the list put together where there is
/// something in it.
fn moving(expr: &mut Expr) {
    let Expr::Function(call) = &mut *expr else { return };
    let Some(WindowType::WindowSpec(window)) = &call.over else { return };
    let begins = window.window_frame.as_ref().map(|frame| &frame.start_bound);
    if matches!(begins, None | Some(WindowFrameBound::Preceding(None))) {
        return;
    }
    let FunctionArguments::List(list) = &call.args else { return };
    let [text, between] = list.args.as_slice() else { return };
    if !call.name.to_string().eq_ignore_ascii_case("string_agg")
        || !list.clauses.is_empty()
        || list.duplicate_treatment.is_some()
    {
        return;
    }
    let named = |name: &str| ObjectName::from(vec![Ident::with_span(call.name.span(), name)]);
    let over = |name: &str| {
        let mut aggregate = call.clone();
        aggregate.name = named(name);
        if let FunctionArguments::List(list) = &mut aggregate.args {
            list.args = vec![text.clone()];
        }
        aggregate
    };
    let mut together = call.clone();
    (together.name, together.over, together.filter) = (named("array_to_string"), None, None);
    if let FunctionArguments::List(list) = &mut together.args {
        let all = FunctionArgExpr::Expr(Expr::Function(over("array_agg")));
        list.args = vec![FunctionArg::Unnamed(all), between.clone()];
    }
    let zero = Expr::Value(Value::Number("0".to_owned(), false).into());
    let (left, right) = (Box::new(Expr::Function(over("count"))), Box::new(zero));
    let condition = Expr::BinaryOp { left, op: BinaryOperator::Gt, right };
    *expr = Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result: Expr::Function(together) }],
        else_result: None,
    };
}

/// Refuses frames that reach beyond what rows can be counted by: DataFusion adds their bounds to the number of a row.
fn check_frame(frame: &WindowFrame) -> Result<()> {
    for bound in [Some(&frame.start_bound), frame.end_bound.as_ref()].into_iter().flatten() {
        if let WindowFrameBound::Preceding(Some(rows)) | WindowFrameBound::Following(Some(rows)) = bound
            && let Expr::Value(literal) = rows.as_ref()
            && let Value::Number(digits, _) = &literal.value
            && digits.bytes().all(|digit| digit.is_ascii_digit())
            && digits.parse::<i64>().is_err()
        {
            let message = format!("a frame of `{digits}` rows is beyond 64 bits");
            return Err(error_at(literal.span, message, "UNBOUNDED PRECEDING and UNBOUNDED FOLLOWING take all"));
        }
    }
    Ok(())
}

/// Refuses what stands behind a query.
pub(super) fn check_query(query: &Query) -> Result<()> {
    check_limit(query)?;
    let behind = [
        query.for_clause.as_ref().map(|clause| (clause.to_string(), "`--format` says how an answer is written")),
        query.format_clause.as_ref().map(|clause| (clause.to_string(), "`--format` says how an answer is written")),
        query.settings.as_ref().map(|_| ("SETTINGS".to_owned(), "`SET name = value` is a statement of its own")),
    ];
    if let Some((what, hint)) = behind.into_iter().flatten().next() {
        return Err(error_at(query.body.span(), format!("`{what}` is not supported"), hint));
    }
    match query.locks.first() {
        Some(lock) => Err(error_at(
            query.body.span(),
            format!("`{lock}` is not supported"),
            "what was read from a trace cannot change",
        )),
        None => Ok(()),
    }
}

/// Refuses arguments that functions of windows pass over.
fn check_arguments(call: &Function) -> Result<()> {
    let FunctionArguments::List(list) = &call.args else { return Ok(()) };
    let name = call.name.to_string().to_lowercase();
    match name.as_str() {
        "first_value" | "last_value" if list.args.len() != 1 => {
            let hint = format!("`nth_value(x, 2)` is the second value, `{name}(x) IGNORE NULLS` one that is not NULL");
            Err(error_at(call.name.span(), format!("`{name}` takes one value, found {}", list.args.len()), &hint))
        }
        "nth_value" if list.args.len() != 2 => {
            let hint = "`nth_value(x, 2)` is the second value";
            Err(error_at(call.name.span(), "`nth_value` takes a value and a number", hint))
        }
        "nth_value" if list.args.get(1).is_some_and(is_below_one) => {
            let hint = "values are counted from 1: `nth_value(x, 2)` is the second; the last ones come first where the order is DESC";
            Err(error_at(call.name.span(), "`nth_value` takes a number above 0", hint))
        }
        "busy" | "max_concurrency" | "mean_concurrency" | "occupancy" => {
            let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(finish))) = list.args.get(1) else { return Ok(()) };
            let name_of_column = match finish {
                Expr::Identifier(column) => Some(column),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            if name_of_column.is_none_or(|column| !column.value.eq_ignore_ascii_case("duration")) {
                return Ok(());
            }
            let hint = format!("`{name}(start, finish)`, or `start + duration`");
            Err(error_at(finish.span(), format!("`{name}` takes the end of each span, and no duration"), &hint))
        }
        _ => Ok(()),
    }
}

fn is_below_one(argument: &FunctionArg) -> bool {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(number)) = argument else { return false };
    match number {
        Expr::UnaryOp { op: UnaryOperator::Minus, .. } => true,
        Expr::Value(literal) => matches!(&literal.value, Value::Number(digits, _) if digits.parse() == Ok(0_u64)),
        _ => false,
    }
}

/// Refuses LIMIT and OFFSET that are computed by a query.
fn check_limit(query: &Query) -> Result<()> {
    let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause else { return Ok(()) };
    for rows in limit.iter().chain(offset.iter().map(|offset| &offset.value)) {
        let asks = |part: &Expr| match part {
            Expr::Subquery(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        if visit_expressions(rows, asks).is_break() {
            let hint = "number the rows: `SELECT … FROM (SELECT *, row_number() OVER (ORDER BY x) AS place FROM …) WHERE place <= (SELECT …)`";
            return Err(error_at(rows.span(), "LIMIT and OFFSET take a number here, and no subquery", hint));
        }
    }
    Ok(())
}

/// `1_000` is 1000. Expressions that would mean something else are refused.
pub(super) fn rewrite_expression(expr: &mut Expr) -> Result<()> {
    if let Expr::Value(literal) = expr
        && let Value::Number(digits, _) = &mut literal.value
    {
        digits.retain(|digit| digit != '_');
    }
    decimals::rewrite(expr)?;
    if let Expr::Function(call) = expr {
        check_arguments(call)?;
    }
    if let Expr::Function(call) = expr
        && let Some((_, name)) = OTHER_NAMES.iter().find(|(other, _)| call.name.to_string().eq_ignore_ascii_case(other))
    {
        call.name = ObjectName::from(vec![Ident::with_span(call.name.span(), *name)]);
    }
    operators(expr);
    if let Expr::Function(call) = expr
        && call.name.to_string().eq_ignore_ascii_case("any_value")
        && let FunctionArguments::List(list) = &call.args
        && list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)))
    {
        let hint = "`first_value(x ORDER BY y) FILTER (WHERE x IS NOT NULL)` takes the first one";
        return Err(error_at(call.name.span(), "any_value takes no ORDER BY", hint));
    }
    if let Expr::Function(call) = expr
        && ["to_char", "date_format"].iter().any(|name| call.name.to_string().eq_ignore_ascii_case(name))
        && let FunctionArguments::List(list) = &call.args
        && let [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(format)))] = list.args.as_slice()
        && let Value::SingleQuotedString(text) = &format.value
        && !text.contains('%')
        && !["", "pretty", "iso8601"].contains(&text.as_str())
    {
        let hint = "formats are those of strftime: `to_char(t, '%Y-%m-%d %H:%M:%S')`";
        return Err(error_at(
            call.name.span(),
            format!("the format '{text}' has no % and says nothing of the time"),
            hint,
        ));
    }
    if let Expr::Function(call) = expr
        && let Some(WindowType::WindowSpec(window)) = &mut call.over
    {
        if let Some(frame) = &mut window.window_frame {
            frames::compute_bounds(frame)?;
            check_frame(frame)?;
        }
        for key in &mut window.order_by {
            if matches!(&key.expr, Expr::Value(literal) if literal.value == Value::Null) {
                let (data_type, format) = (DataType::BigInt(None), None);
                let null = Box::new(std::mem::replace(&mut key.expr, Expr::Identifier("".into())));
                key.expr = Expr::Cast { kind: CastKind::Cast, expr: null, data_type, array: false, format };
            }
        }
    }
    if let Expr::Function(call) = expr {
        frames::without_rows(call)?;
    }
    any_or_all(expr)?;
    if let Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } = expr {
        escaped(pattern, escape_char);
    }
    if let Expr::Cast { data_type: data_type @ (DataType::JSON | DataType::JSONB), .. } = expr {
        *data_type = DataType::Varchar(None);
    }
    joined::rewrite(expr);
    shifts::rewrite(expr);
    moving(expr);
    if let Expr::Interval(interval) = expr
        && interval_text::says_its_fields(interval)
    {
        (interval.leading_field, interval.last_field) = (None, None);
    }
    if let Expr::Interval(interval) = expr
        && interval.leading_field.is_none()
        && let Expr::Value(literal) = interval.value.as_mut()
        && let Value::SingleQuotedString(text) = &mut literal.value
    {
        *text = interval_text::with_units(text).into_owned();
    }
    times::rewrite(expr);
    if let Some(steps) = path_of_json(expr) {
        *expr = steps;
    }
    if let Expr::SimilarTo { expr: left, .. } = expr {
        let hint = "`~ '^(a|b.*)$'` takes regular expressions, `LIKE 'a%'` patterns with % and _";
        return Err(error_at(left.span(), "SIMILAR TO is not supported", hint));
    }
    Ok(())
}

/// Other names of functions.
const OTHER_NAMES: [(&str, &str); 4] =
    [("variance", "var"), ("every", "bool_and"), ("ceiling", "ceil"), ("div", "integer_divide")];

/// `~a` of whole numbers, and slices of lists without one of their ends.
fn operators(expr: &mut Expr) {
    let number = |number: i32| {
        let literal = Expr::Value(Value::Number(number.unsigned_abs().to_string(), false).into());
        if number < 0 { Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(literal) } } else { literal }
    };
    match expr {
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: value } => {
            let left = std::mem::replace(value, Box::new(Expr::Identifier("".into())));
            let flipped = Expr::BinaryOp { left, op: BinaryOperator::PGBitwiseXor, right: Box::new(number(-1)) };
            *expr = Expr::Nested(Box::new(flipped));
        }
        // A text in the place of a number is a regular expression.
        Expr::Substring { expr: text, substring_from: Some(pattern), substring_for: None, .. } if matches!(pattern.as_ref(), Expr::Value(literal) if matches!(literal.value, Value::SingleQuotedString(_))) =>
        {
            let of = [text, pattern].map(|part| std::mem::replace(part.as_mut(), Expr::Identifier("".into())));
            let root = Box::new(Expr::Nested(Box::new(dialect::call(Ident::new("regexp_match"), of))));
            let access_chain = vec![AccessExpr::Subscript(Subscript::Index { index: number(1) })];
            *expr = Expr::CompoundFieldAccess { root, access_chain };
        }
        Expr::CompoundFieldAccess { access_chain, .. } => {
            for access in access_chain {
                if let AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) = access {
                    lower_bound.get_or_insert_with(|| number(1));
                    upper_bound.get_or_insert_with(|| number(i32::MAX));
                }
            }
        }
        _ => {}
    }
}

/// `args #>> '{a,0}'` and `args #>> array['a', 0]` step by step: `args -> 'a' ->> 0`.
fn path_of_json(expr: &mut Expr) -> Option<Expr> {
    let Expr::BinaryOp { left, op, right } = expr else { return None };
    let last = match op {
        BinaryOperator::HashArrow => BinaryOperator::Arrow,
        BinaryOperator::HashLongArrow => BinaryOperator::LongArrow,
        _ => return None,
    };
    let step = |text: &str| match text.parse::<i64>() {
        Ok(_) => Value::Number(text.to_owned(), false),
        Err(_) => Value::SingleQuotedString(text.to_owned()),
    };
    let keys: Vec<Value> = match right.as_ref() {
        Expr::Value(literal) => match &literal.value {
            Value::SingleQuotedString(path) => {
                let path = path.trim().strip_prefix('{')?.strip_suffix('}')?;
                path.split(',').map(|key| step(key.trim().trim_matches('"'))).collect()
            }
            _ => return None,
        },
        Expr::Array(array) => {
            let key = |element: &Expr| match element {
                Expr::Value(literal) => match &literal.value {
                    Value::SingleQuotedString(text) => Some(step(text)),
                    Value::Number(..) => Some(literal.value.clone()),
                    _ => None,
                },
                _ => None,
            };
            array.elem.iter().map(key).collect::<Option<_>>()?
        }
        _ => return None,
    };
    let (end, begin) = keys.split_last()?;
    let one = |left, op, key: &Value| Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(Expr::Value(key.clone().into())),
    };
    let root = std::mem::replace(left.as_mut(), Expr::Identifier("".into()));
    let steps = begin.iter().fold(root, |left, key| one(left, BinaryOperator::Arrow, key));
    Some(one(steps, last, end))
}
