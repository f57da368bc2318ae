//! The modules of the page as one script: browsers load no modules from `file://`.
//!
//! Each module becomes a function that runs once and gives what it exports; what a module imports comes before it:
//!
//! ```text
//! const view = (() => { const { most } = ticks; … return { View, overlap }; })();
//! ```
//!
//! It knows one form of import and one of export, which a test holds the modules to:
//! `import { a, b } from './c.js';` and `export` before `class`, `const`, `function` or `async function`.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A module, taken apart.
struct Module {
    /// The modules that it imports, with the names.
    imports: Vec<(String, String)>,
    exports: Vec<String>,
    body: String,
}

/// One script of the modules that `main` needs, in an order in which each comes after those that it imports.
///
/// # Errors
/// What it cannot read: a form of import or export that it does not know, a module that is not there, modules in a circle.
pub(super) fn script(files: &[(&str, String)], main: &str) -> Result<String, String> {
    let modules = files.iter().filter_map(|(file, text)| Some((file.strip_suffix(".js")?.to_owned(), text)));
    let modules: BTreeMap<String, Module> = modules
        .map(|(name, text)| {
            let module = taken_apart(text).map_err(|what| format!("{name}.js: {what}"))?;
            Ok((name, module))
        })
        .collect::<Result<_, String>>()?;
    let mut order = Vec::new();
    visit(main, &modules, &mut Vec::new(), &mut order)?;
    let mut script = String::from("'use strict';\n");
    for name in order {
        let Module { imports, exports, body } = &modules[name];
        let _ = writeln!(script, "const {name}$ = (() => {{");
        for (module, names) in imports {
            let _ = writeln!(script, "const {{ {names} }} = {module}$;");
        }
        let _ = writeln!(script, "{body}return {{ {} }};\n}})();", exports.join(", "));
    }
    // What would end the element that the script stands in.
    Ok(script.replace("</script", "<\\/script").replace("<!--", "<\\!--"))
}

fn visit<'m>(
    name: &str,
    modules: &'m BTreeMap<String, Module>,
    open: &mut Vec<&'m str>,
    order: &mut Vec<&'m str>,
) -> Result<(), String> {
    let (name, module) = modules.get_key_value(name).ok_or_else(|| format!("{name}.js is not there"))?;
    if order.contains(&name.as_str()) {
        return Ok(());
    }
    if open.contains(&name.as_str()) {
        return Err(format!("{name}.js imports itself, by way of {}", open.join(", ")));
    }
    open.push(name);
    for (imported, _) in &module.imports {
        visit(imported, modules, open, order)?;
    }
    open.pop();
    order.push(name);
    Ok(())
}

fn taken_apart(text: &str) -> Result<Module, String> {
    let mut module = Module { imports: Vec::new(), exports: Vec::new(), body: String::new() };
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("import") {
            let mut statement = line.to_owned();
            while !statement.ends_with(';') {
                statement.push(' ');
                statement.push_str(lines.next().ok_or_else(|| format!("`{line}` does not end"))?.trim());
            }
            module.imports.push(imported(&statement).ok_or_else(|| format!("`{statement}` is no import it knows"))?);
        } else if let Some(declared) = line.strip_prefix("export ") {
            module.exports.push(exported(declared).ok_or_else(|| format!("`{line}` is no export it knows"))?);
            module.body.extend([declared, "\n"]);
        } else if line.contains("import(") || line.contains("import.meta") {
            return Err(format!("`{line}` imports later"));
        } else {
            module.body.extend([line, "\n"]);
        }
    }
    Ok(module)
}

/// Module and names of `import { a, b } from './c.js';`.
fn imported(statement: &str) -> Option<(String, String)> {
    let (names, from) = statement.strip_prefix("import {")?.split_once("} from './")?;
    let module = from.strip_suffix(".js';")?;
    let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let are_names = !names.is_empty() && is_name(module) && names.iter().all(|name| is_name(name));
    are_names.then(|| (module.to_owned(), names.join(", ")))
}

/// The name of what `class C {`, `const c =`, `function f(`, `async function f(` declares.
fn exported(declared: &str) -> Option<String> {
    let declared = declared.strip_prefix("async ").filter(|rest| rest.starts_with("function ")).unwrap_or(declared);
    let (keyword, rest) = declared.split_once(' ')?;
    let name = rest.split(|c: char| !is_letter(c)).next()?;
    (["class", "const", "function"].contains(&keyword) && is_name(name)).then(|| name.to_owned())
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(files: &[(&str, &str)]) -> Result<String, String> {
        let files: Vec<(&str, String)> = files.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        script(&files, "main")
    }

    #[test]
    fn modules_follow_those_that_they_import() {
        let script = joined(&[
            (
                "main.js",
                "import { a } from './one.js';\nimport {\n  b,\n  c,\n} from './two.js';\na(b, c, '</script>');\n",
            ),
            ("one.js", "import { b } from './two.js';\nexport async function a() { return b; }\n"),
            ("style.css", "import"),
            ("two.js", "export const b = 1;\nexport class c {}\n"),
        ]);
        assert_eq!(
            script.unwrap(),
            "'use strict';\n\
             const two$ = (() => {\nconst b = 1;\nclass c {}\nreturn { b, c };\n})();\n\
             const one$ = (() => {\nconst { b } = two$;\nasync function a() { return b; }\nreturn { a };\n})();\n\
             const main$ = (() => {\nconst { a } = one$;\nconst { b, c } = two$;\na(b, c, '<\\/script>');\nreturn {  };\n})();\n"
        );
    }

    #[test]
    fn other_forms_are_refused() {
        let wrong = [
            "import './one.js';",
            "import a from './one.js';",
            "import * as a from './one.js';",
            "import { a as b } from './one.js';",
            "import { a } from 'https://example.org/one.js';",
            "const a = import('./one.js');",
            "export default 1;",
            "export { a };",
            "export * from './one.js';",
            "export let a = 1;",
            "import { a } from './none.js';",
            "import { main } from './main.js';",
        ];
        for text in wrong {
            let told = joined(&[("main.js", text), ("one.js", "export const a = 1;")]).unwrap_err();
            assert!(told.contains(".js"), "{told}");
        }
    }
}
