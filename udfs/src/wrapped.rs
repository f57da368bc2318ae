//! A macro that writes the methods by which a wrapper of a DataFusion function delegates to it.

/// Methods that ask the field `function` for the answer, one a line: `fn name(&self) -> &str;`.
macro_rules! of_wrapped {
    ($(fn $method:ident $(<$life:lifetime>)? (&self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {
        $(fn $method $(<$life>)? (&self $(, $argument: $type)*) -> $answer {
            self.function.$method($($argument),*)
        })*
    };
}

pub(crate) use of_wrapped;
