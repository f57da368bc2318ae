//! The address of the page: with a token that cannot be guessed; printed, and opened in a browser.

use std::io::{self, IsTerminal, Read};
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::errors::{Failure, Problem};
use crate::output;

/// The first part of every path. Whoever knows it may ask.
#[derive(Clone)]
pub(super) struct Token(Arc<str>);

impl From<String> for Token {
    fn from(text: String) -> Token {
        Token(text.into())
    }
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// 144 bits.
const LENGTH: usize = 24;

impl Token {
    /// A token made of the system's random numbers.
    pub(super) fn random() -> Result<Token, Failure> {
        let mut bytes = [0; LENGTH];
        let read = std::fs::File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes));
        read.map_err(|error| Problem::file("read", "/dev/urandom".as_ref(), &error))?;
        let letters = bytes.map(|byte| char::from(LETTERS[usize::from(byte & 63)]));
        Ok(Token::from(letters.iter().collect::<String>()))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Takes as long whichever letter differs.
    pub(super) fn is(&self, other: &str) -> bool {
        let differing = self.0.bytes().zip(other.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
        self.0.len() == other.len() && differing == 0
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
    fn tokens_are_long_and_differ() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(one.text().len() >= 22 && one.text().bytes().all(|byte| LETTERS.contains(&byte)));
        assert!(one.is(one.text()) && !one.is(other.text()) && !one.is(&one.text()[1..]) && !one.is(""));
    }
}
