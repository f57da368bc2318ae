//! Profile: static keys and regions of `~/.aws`, as the programs of AWS write them.
//!
//! ```text
//! ~/.aws/credentials    [default]             aws_access_key_id = AKIA…     aws_secret_access_key = …
//! ~/.aws/config         [profile nightly]     region = eu-central-1         sso_session = …
//! ```
//! `AWS_PROFILE` chooses. What a profile gets from elsewhere (single sign-on, roles, programs) is for `aws` to ask for: the error says how.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::error::ImportError;
use crate::paths::read_text;

/// Keys that say where a profile gets its credentials from.
const ELSEWHERE: [&str; 6] =
    ["sso_session", "sso_start_url", "credential_process", "role_arn", "login_session", "web_identity_token_file"];

/// Static credentials.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) id: String,
    pub(super) secret: String,
    pub(super) token: Option<String>,
}

/// The profile that is meant.
pub(super) fn name() -> String {
    let given = ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"].into_iter().find_map(|name| std::env::var(name).ok());
    given.filter(|name| !name.is_empty()).unwrap_or_else(|| "default".to_owned())
}

/// The region that the profile names.
pub(super) fn region() -> Option<String> {
    let name = name();
    section(&config()?, &name).or_else(|| section(&credentials()?, &name))?.remove("region")
}

/// The keys of the profile; `None` where nothing is written of it.
pub(super) fn keys(shown: &Path) -> Result<Option<Keys>, ImportError> {
    let name = name();
    let of = |text: Option<String>| text.and_then(|text| section(&text, &name));
    let (credentials, config) = (of(credentials()), of(config()));
    let is_known = credentials.is_some() || config.is_some();
    if let Some(keys) = [&credentials, &config].into_iter().flatten().find_map(keys_of) {
        return Ok(Some(keys));
    }
    let all = || [&credentials, &config].into_iter().flatten();
    if let Some(source) = ELSEWHERE.iter().find(|key| all().any(|section| section.contains_key(**key))) {
        return Err(ImportError::Unusable {
            path: shown.to_owned(),
            what: format!(
                "the keys of profile `{name}` come from elsewhere (`{source}`), and tq reads only those that are written down"
            ),
            hint: Some(format!("eval \"$(aws configure export-credentials --profile {name} --format env)\"")),
        });
    }
    if !is_known && name != "default" {
        return Err(ImportError::Unusable {
            path: shown.to_owned(),
            what: format!("there is no profile `{name}` in ~/.aws/credentials and ~/.aws/config"),
            hint: Some("AWS_PROFILE names it; `aws configure list-profiles` lists what there is".to_owned()),
        });
    }
    Ok(None)
}

fn keys_of(section: &HashMap<String, String>) -> Option<Keys> {
    let get = |key: &str| section.get(key).filter(|value| !value.is_empty()).cloned();
    Some(Keys { id: get("aws_access_key_id")?, secret: get("aws_secret_access_key")?, token: get("aws_session_token") })
}

fn credentials() -> Option<String> {
    text("AWS_SHARED_CREDENTIALS_FILE", "credentials")
}

fn config() -> Option<String> {
    text("AWS_CONFIG_FILE", "config")
}

fn text(variable: &str, name: &str) -> Option<String> {
    let given = std::env::var_os(variable).map(PathBuf::from);
    let usual = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".aws").join(name));
    read_text(&given.or_else(usual)?).ok()
}

/// The keys of a section, which is called `[name]` or `[profile name]`. Nested keys (indented lines) are left out.
fn section(text: &str, name: &str) -> Option<HashMap<String, String>> {
    let mut found: Option<HashMap<String, String>> = None;
    let mut is_ours = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(heading) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let heading = heading.trim();
            is_ours = heading.strip_prefix("profile ").map_or(heading, str::trim) == name;
            if is_ours {
                found.get_or_insert_default();
            }
        } else if is_ours
            && !trimmed.starts_with(['#', ';'])
            && !line.starts_with([' ', '\t'])
            && let (Some(found), Some((key, value))) = (&mut found, trimmed.split_once('='))
        {
            found.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_as_aws_writes_them() {
        let text = "# a\n[default]\nregion=us-east-1\naws_access_key_id = A\n aws_secret_access_key = nested\n\n\
            [profile night ly]\nAWS_ACCESS_KEY_ID= B\naws_secret_access_key =x=y/z+\n; c = d\n[other]\nregion = nowhere\n";
        assert_eq!(section(text, "default").unwrap().len(), 2);
        let keys = keys_of(&section(text, "night ly").unwrap()).unwrap();
        assert_eq!(keys, Keys { id: "B".to_owned(), secret: "x=y/z+".to_owned(), token: None });
        assert_eq!(section(text, "other").unwrap()["region"], "nowhere");
        assert!(section(text, "none").is_none() && keys_of(&section(text, "default").unwrap()).is_none());
    }
}
