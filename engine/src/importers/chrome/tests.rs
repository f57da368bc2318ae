//! What the reader as a whole makes of small texts.

use super::*;
