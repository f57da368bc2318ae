//! The address of the page: with a token that cannot be guessed; printed, and opened in a browser.

use std::io::{self, IsTerminal};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tq_engine::secret::is_same;

use crate::errors::Failure;
use crate::{output, secret};

/// The first part of every path. Whoever knows it may ask.
#[derive(Clone)]
pub(super) struct Token(Arc<str>);

impl From<String> for Token {
    fn from(text: String) -> Token {
        Token(text.into())
    }
}

impl Token {
    /// A token made of the system's random numbers.
    pub(super) fn random() -> Result<Token, Failure> {
        secret::random().map(Token::from)
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Takes as long whichever letter differs.
    pub(super) fn is(&self, other: &str) -> bool {
        is_same(self.0.as_bytes(), other.as_bytes())
    }
}

/// Says where the page is, and opens it in a browser where there is one to see.
pub(super) fn tell(port: u16, token: &Token, opens: bool) -> Result<(), Failure> {
    let address = format!("http://127.0.0.1:{port}/{}/", token.text());
    output::print(&format!("{address}\n"))?;
    if std::env::var_os("SSH_CONNECTION").is_some() {
        let host = std::env::var("SSH_CONNECTION").unwrap_or_default();
        let host = host.split_whitespace().nth(2).unwrap_or("HOST").to_owned();
        crate::terminal::hint(&format!(
            "on your machine: `ssh -N -L {port}:127.0.0.1:{port} {host}`, then open the address there"
        ));
    } else if opens && io::stdout().is_terminal() {
        open(&address);
    }
    Ok(())
}

/// The browser that the desktop wants; without one the address is there to be clicked.
fn open(address: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started =
        Command::new(program).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Ok(mut child) = started {
        std::thread::spawn(move || child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_token_will_do() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(one.is(one.text()) && !one.is(other.text()) && !one.is(&one.text()[1..]) && !one.is(""));
    }
}
