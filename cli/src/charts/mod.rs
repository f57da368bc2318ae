//! Charts: data in, the text of an SVG out. Pure: no session, no files, no clock.
//!
//! One file per kind of chart; [`svg`] writes elements, [`axis`] finds round times, [`palette`] gives names their colours.
//! The same data gives the same bytes: decimals are fixed, and whatever has no order is sorted. Colours are classes with
//! a light and a dark form, so that a picture is legible in both; no scripts, no fonts, no variables, since viewers
//! other than browsers leave those out.

mod axis;
pub(crate) mod gantt;
mod palette;
mod svg;
