//! Names shortened for people: long ones without the parts that they all share, and no two shortened to the same text.
//!
//! ```text
//! void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, …>(int, …)   vectorized_elementwise_kernel
//! torch/nn/modules/module.py(1951): __getattr__                                                  module.py(1951): __getattr__
//! <built-in method size of Tensor object at 0x7fdc681f1c70>                                      <built-in method size of Tensor>
//! ```
//! Namespaces, template arguments and parameters of C++ names are left out; where several names of a page would then be the same,
//! the arguments in which they differ are kept ([`Labels`]). A name that is still too long is cut, so that what differs stays.

use std::collections::{HashMap, HashSet};

use super::svg::text_width;

/// Shorter names stay as they are.
const SHORT: usize = 36;
/// The longest label, in characters.
const LABEL_MAX: usize = 64;
/// The levels of detail of a label, least first: 0 without arguments, 1 with the arguments that differ, 2 with the words in which arguments
/// differ, 3 the whole name.
const LEVELS: usize = 4;

/// The labels of a page: a name has the same one everywhere, and no other name has it.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    by_name: HashMap<String, String>,
    taken: HashSet<String>,
}

impl Labels {
    /// The labels of some names, which may repeat.
    pub(crate) fn of<'n>(&mut self, names: impl Iterator<Item = &'n str> + Clone) -> Vec<String> {
        let mut seen = HashSet::new();
        let mut open: Vec<&str> = Vec::new();
        for name in names.clone().filter(|name| seen.insert(*name)) {
            if self.by_name.contains_key(name) {
                continue;
            }
            // A short name is its own label, and others must not take it.
            if name.chars().count() <= SHORT && self.taken.insert(name.to_owned()) {
                self.by_name.insert(name.to_owned(), name.to_owned());
            } else {
                open.push(name);
            }
        }
        for level in 0..LEVELS {
            let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
            let mut places: HashMap<String, usize> = HashMap::new();
            for (name, text) in open.iter().zip(told(&open, level)) {
                match places.get(&text) {
                    Some(&place) => groups[place].1.push(name),
                    None => {
                        places.insert(text.clone(), groups.len());
                        groups.push((text, vec![name]));
                    }
                }
            }
            open.clear();
            for (text, names) in groups {
                let is_short = text.chars().count() <= LABEL_MAX;
                match names.as_slice() {
                    [name] if is_short && self.taken.insert(text.clone()) => {
                        self.by_name.insert((*name).to_owned(), text);
                    }
                    names => open.extend_from_slice(names),
                }
            }
        }
        // Too long whatever is left out: cut, so that what differs stays.
        let mut texts = told(&open, LEVELS - 2);
        let mut seen = HashMap::new();
        texts.iter().for_each(|text| *seen.entry(text.clone()).or_insert(0) += 1);
        for (text, name) in texts.iter_mut().zip(&open).filter(|(text, _)| seen[*text] > 1) {
            *text = (*name).to_owned();
        }
        let cuts = cut_apart(&texts, &|text, place| shortened(text, LABEL_MAX - 6, place));
        for (name, cut) in open.iter().zip(cuts) {
            let numbered = (2..).map(|number| format!("{cut} ({number})"));
            let free = std::iter::once(cut.clone()).chain(numbered).find(|label| self.taken.insert(label.clone()));
            self.by_name.insert((*name).to_owned(), free.unwrap_or(cut));
        }
        names.map(|name| self.by_name.get(name).cloned().unwrap_or_else(|| name.to_owned())).collect()
    }
}

/// The name, or `(unnamed)` for an empty one.
pub(super) fn shown(name: &str) -> &str {
    if name.is_empty() { "(unnamed)" } else { name }
}

/// Splits a text of `explain_change` and its saved queries (`work in gemm`, `gemm: waiting`) into what stands before the name of a task, the name, and
/// what stands after it.
pub(super) fn name_of_change(text: &str) -> [&str; 3] {
    let (before, rest) = text.split_at(if text.starts_with("work in ") { "work in ".len() } else { 0 });
    let ends = [": work", ": waiting", ": on one path only"];
    let end = ends.iter().find(|end| before.is_empty() && rest.ends_with(*end)).map_or(0, |end| end.len());
    let (name, after) = rest.split_at(rest.len() - end);
    [before, name, after]
}

/// The names at a level of detail ([`LEVELS`]).
fn told(names: &[&str], level: usize) -> Vec<String> {
    if level + 1 >= LEVELS {
        return names.iter().map(|name| (*name).to_owned()).collect();
    }
    let mut parts: Vec<Short> = names.iter().map(|name| Short::of(name)).collect();
    for part in &mut parts {
        part.arguments = if level == 1 {
            part.arguments.iter().map(|argument| Short::of_cpp(argument).owner).collect()
        } else {
            words(&part.arguments)
        };
    }
    let mut alike: HashMap<&str, Vec<&Short>> = HashMap::new();
    for part in &parts {
        alike.entry(&part.base).or_default().push(part);
    }
    let with_arguments = |(short, name): (&Short, &&str)| {
        let others = &alike[short.base.as_str()];
        let tells = |(at, argument): &(usize, &String)| match level {
            1 => others.iter().any(|other| other.arguments.get(*at) != Some(argument)),
            _ => others.iter().any(|other| !other.arguments.contains(argument)),
        };
        let told: Vec<&str> = short.arguments.iter().enumerate().filter(tells).map(|(_, told)| told.as_str()).collect();
        match level {
            0 => short.base.clone(),
            _ if !told.is_empty() => format!("{}<{}>", short.base, told.join(", ")),
            _ if short.arguments.is_empty() => (*name).to_owned(),
            _ => format!("{}<…>", short.base),
        }
    };
    parts.iter().zip(names).map(with_arguments).collect()
}

/// The names in some arguments, each once and without its namespaces.
fn words(arguments: &[String]) -> Vec<String> {
    const TELL_NOTHING: [&str; 5] = ["lambda", "const", "operator", "void", "unsigned"];
    let mut words: Vec<String> = Vec::new();
    for argument in arguments {
        let is_inside = |c: char| c.is_alphanumeric() || c == '_';
        let ends = argument
            .char_indices()
            .filter(|(at, c)| is_inside(*c) && !argument[at + c.len_utf8()..].starts_with(is_inside));
        for (at, c) in ends {
            let (until, behind) = argument.split_at(at + c.len_utf8());
            let word = &until[until.trim_end_matches(is_inside).len()..];
            let is_namespace = behind.strip_prefix("::").is_some_and(|behind| behind.starts_with(is_inside));
            if !is_namespace && !TELL_NOTHING.contains(&word) && !words.iter().any(|known| known == word) {
                words.push(word.to_owned());
            }
        }
    }
    words
}

/// A name taken apart: what it is called, and its template arguments.
#[derive(Debug)]
struct Short {
    base: String,
    /// The innermost named function or class around a lambda and the like, else the base.
    owner: String,
    arguments: Vec<String>,
}

impl Short {
    fn of(name: &str) -> Short {
        let plain = |base: String| Short { owner: base.clone(), base, arguments: Vec::new() };
        if let Some(base) = of_python(name) {
            return plain(base);
        }
        if !is_cpp(name) {
            return plain(name.to_owned());
        }
        // `autograd::engine::evaluate_function: torch::autograd::AccumulateGrad`
        match name.rsplit_once(": ") {
            Some((what, of)) if !of.contains(['<', '(']) => {
                let last = Short::of_cpp(of);
                Short { base: format!("{}: {}", Short::of_cpp(what).base, last.base), ..last }
            }
            _ => Short::of_cpp(name),
        }
    }

    fn of_cpp(name: &str) -> Short {
        let name = name.replace("(anonymous namespace)::", "");
        let bytes = name.as_bytes();
        let mut base = String::new();
        let mut arguments = Vec::new();
        // Where the name may begin, and whether more than words stood behind that.
        let (mut begin, mut word, mut is_decorated) = (0, 0, false);
        let mut at = 0;
        while at < name.len() {
            let after_word = base.ends_with(|c: char| c.is_alphanumeric() || "_>})]~'".contains(c));
            let after_operator = base.ends_with("operator");
            match bytes[at] {
                b'<' if after_word && !after_operator => {
                    let end = closing(&name, at);
                    arguments = split(&name[at + 1..end]);
                    is_decorated = true;
                    at = end + 1;
                }
                b'(' if after_word => {
                    let end = closing(&name, at);
                    is_decorated = true;
                    if after_operator && end == at + 1 {
                        base.push_str("()");
                    }
                    at = end + 1;
                }
                b'{' => {
                    let end = closing(&name, at);
                    let inner = name.get(at + 1..end).unwrap_or_default();
                    base.push_str(&format!("{{{}{}}}", inner.split('(').next().unwrap_or_default(), number_of(inner)));
                    at = end + 1;
                }
                // What follows a name is not the name.
                b' ' if is_suffix(&name[at..], " const") => at += " const".len(),
                b' ' if name[at..].starts_with(" [clone") => break,
                b' ' if !after_operator => {
                    if is_decorated {
                        begin = word;
                    }
                    base.push(' ');
                    (word, is_decorated) = (base.len(), false);
                    at += 1;
                }
                _ => {
                    let c = name[at..].chars().next().unwrap_or(' ');
                    is_decorated |= name[at..].starts_with("::");
                    base.push(c);
                    at += c.len_utf8();
                }
            }
        }
        if is_decorated {
            begin = word;
        }
        let name = base[begin..].trim().trim_start_matches(['*', '&']);
        let mut components: Vec<&str> = name.split("::").filter(|component| !component.is_empty()).collect();
        let last = components.pop().unwrap_or_else(|| base.trim());
        let is_anonymous = |component: &str| component.starts_with(['{', '\'']) || component == "operator()";
        let owner = match components.into_iter().rev().find(|component| !is_anonymous(component)) {
            Some(owner) if is_anonymous(last) => owner,
            _ => last,
        };
        let base = if owner == last { last.to_owned() } else { format!("{owner}::{last}") };
        Short { owner: owner.to_owned(), base, arguments }
    }
}

/// Whether a text begins with a word.
fn is_suffix(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|behind| !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// A file without its folders, a method without the address of its object; `None` where a name is neither.
fn of_python(name: &str) -> Option<String> {
    if let Some((what, address)) = name.strip_suffix('>').and_then(|name| name.rsplit_once(" at 0x"))
        && address.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        let what = what.strip_suffix(" object").unwrap_or(what);
        // `<built-in method size of pybind11_builtins.pybind11_detail_function_record_v1_… object at 0x…>`
        let (method, class) = what.rsplit_once(" of ").unwrap_or((what, ""));
        let class = class.rsplit('.').next().unwrap_or_default();
        return Some(if class.is_empty() {
            format!("{method}>")
        } else {
            format!("{method} of {}>", shortened(class, 24, None))
        });
    }
    let path = name.split(['(', ' ']).next().unwrap_or_default();
    let behind = &name[path.len()..];
    let is_path = path.contains('/') && !path.contains("//") && (behind.is_empty() || behind.starts_with('('));
    if !is_path {
        return None;
    }
    let mut folders = path.rsplit('/').filter(|part| !part.is_empty());
    let file = folders.next()?;
    let file = match folders.next() {
        Some(folder) if file == "__init__.py" => format!("{folder}/{file}"),
        _ => file.to_owned(),
    };
    Some(format!("{file}{behind}"))
}

/// Whether a name is one of a C++ function: it has namespaces, template arguments, or the types of its parameters.
fn is_cpp(name: &str) -> bool {
    let is_type = |c: char| c.is_ascii_alphanumeric() || "_:*&, ".contains(c);
    let has_types = name.strip_suffix(')').and_then(|name| name.split_once('(')).is_some_and(|(function, types)| {
        !function.contains(' ') && types.starts_with(|c: char| c.is_ascii_alphabetic()) && types.chars().all(is_type)
    });
    let is_template = |at: usize| {
        let before = name[..at].chars().next_back();
        before.is_some_and(|c| c.is_alphanumeric() || c == '_') && name[at..].contains('>')
    };
    !name.starts_with(['<', '[', '#', '"'])
        && (has_types
            || name.contains("::")
            || name.starts_with("void ")
            || name.match_indices('<').any(|(at, _)| is_template(at)))
}

/// Where the bracket at a place is closed; at the end of the name where it is not.
fn closing(name: &str, at: usize) -> usize {
    let bytes = name.as_bytes();
    let mut open = Vec::new();
    for (place, &byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            b'<' | b'(' | b'{' | b'[' => open.push(byte),
            // `->` closes nothing, nor does a comparison between parentheses.
            b'>' if bytes[place - 1] == b'-' || open.last() != Some(&b'<') => {}
            b'>' | b')' | b'}' | b']' => {
                while byte != b'>' && open.last() == Some(&b'<') && open.len() > 1 {
                    open.pop();
                }
                open.pop();
                if open.is_empty() {
                    return place;
                }
            }
            _ => {}
        }
    }
    name.len()
}

/// Arguments at their commas.
fn split(list: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < list.len() {
        match list.as_bytes()[at] {
            b'<' | b'(' | b'{' | b'[' => at = closing(list, at),
            b',' => {
                arguments.push(list[from..at].trim().to_owned());
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    arguments.push(list[from.min(list.len())..].trim().to_owned());
    arguments
}

/// `#1` of `lambda(int)#1`.
fn number_of(lambda: &str) -> &str {
    lambda.rfind('#').map_or("", |at| &lambda[at..])
}

/// At most `most` characters of a text: its beginning and its end, and where a place is given, what stands there.
fn shortened(text: &str, most: usize, place: Option<usize>) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= most {
        return text.to_owned();
    }
    let part = |part: std::ops::Range<usize>| characters[part].iter().collect::<String>();
    let end = |tail: usize| part(characters.len() - tail..characters.len());
    let joined = |head: usize, tail: usize| format!("{}…{}", part(0..head), end(tail));
    /// Less of a text is not worth three parts.
    const LEAST: usize = 12;
    let Some(place) = place.filter(|_| most >= LEAST) else {
        return joined(most / 2, most.saturating_sub(most / 2 + 1));
    };
    let (head, tail) = (most / 4, most / 4);
    let inner = most - head - tail - 2;
    // With a little of what stands before it.
    let from = place.saturating_sub(inner / 4);
    if from <= head + 1 {
        joined(most - tail - 1, tail)
    } else if from + inner + 1 >= characters.len() - tail {
        joined(head, most - head - 1)
    } else {
        format!("{}…{}…{}", part(0..head), part(from..from + inner), end(tail))
    }
}

/// Cuts texts so that they stay different. `cut` gets a text and, where several texts would be cut to the same, the place that must stay: the
/// first one at which the text differs from the one most like it.
fn cut_apart(texts: &[String], cut: &dyn Fn(&str, Option<usize>) -> String) -> Vec<String> {
    let mut alike: HashMap<String, Vec<Vec<char>>> = HashMap::new();
    let mut known = HashSet::new();
    for text in texts.iter().filter(|text| known.insert(text.as_str())) {
        alike.entry(cut(text, None)).or_default().push(text.chars().collect());
    }
    for group in alike.values_mut() {
        group.sort_unstable();
    }
    let places: HashMap<String, usize> = alike
        .values()
        .filter(|group| group.len() > 1)
        .flat_map(|group| group.iter().map(|text| text.iter().collect()).zip(shared_with_neighbours(group)))
        .collect();
    texts.iter().map(|text| cut(text, places.get(text).copied())).collect()
}

/// Cuts labels to a width so that no two become the same.
#[derive(Debug)]
pub(super) struct Cuts {
    /// By label: how many of its first characters another label shares, and how many of its last ones.
    shared: HashMap<String, (usize, usize)>,
}

impl Cuts {
    pub(super) fn new<'n>(labels: impl Iterator<Item = &'n str>) -> Cuts {
        let mut forward: Vec<Vec<char>> = labels.map(|label| label.chars().collect()).collect();
        forward.sort_unstable();
        forward.dedup();
        let mut backward: Vec<Vec<char>> = forward.iter().map(|label| label.iter().rev().copied().collect()).collect();
        backward.sort_unstable();
        let heads = shared_with_neighbours(&forward);
        let tails: HashMap<Vec<char>, usize> =
            backward.iter().cloned().zip(shared_with_neighbours(&backward)).collect();
        let both = |(label, head): (&Vec<char>, usize)| {
            let tail = label.iter().rev().copied().collect::<Vec<char>>();
            (label.iter().collect(), (head, tails.get(&tail).copied().unwrap_or(0)))
        };
        Cuts { shared: forward.iter().zip(heads).map(both).collect() }
    }

    /// The label where it fits, else a beginning or an end of it that no other label has; `None` where that does not fit either.
    pub(super) fn fit(&self, label: &str, width: f64) -> Option<String> {
        if text_width(label) <= width {
            return Some(label.to_owned());
        }
        /// Fewer characters tell nothing.
        const LEAST: usize = 5;
        let &(head, tail) = self.shared.get(label)?;
        let characters: Vec<char> = label.chars().collect();
        let fits = |text: &String| text_width(text) <= width;
        let beginning = |count: usize| characters[..count].iter().chain(&['…']).collect::<String>();
        let end = |count: usize| ['…'].iter().chain(&characters[characters.len() - count..]).collect::<String>();
        let longest = |cut: &dyn Fn(usize) -> String, shared: usize| {
            (shared.max(LEAST - 1) + 1..characters.len()).map(cut).take_while(|text| fits(text)).last()
        };
        longest(&beginning, head).or_else(|| longest(&end, tail))
    }
}

/// How many of its first characters each of some sorted texts shares with its neighbours, at most.
fn shared_with_neighbours(texts: &[Vec<char>]) -> Vec<usize> {
    let shared = |a: &[char], b: &[char]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let pairs: Vec<usize> = texts.windows(2).map(|pair| shared(&pair[0], &pair[1])).collect();
    let before = std::iter::once(0).chain(pairs.iter().copied());
    let behind = pairs.iter().copied().chain([0]);
    before.zip(behind).take(texts.len()).map(|(before, behind)| before.max(behind)).collect()
}

/// The labels of rows or columns of a picture, cut so that each fits the width and no two are the same.
pub(super) fn fitted_apart(labels: &[String], width: f64) -> Vec<String> {
    let cuts = cut_apart(labels, &|label, place| fitted_around(label, width, place));
    let mut owners: HashMap<String, &String> = HashMap::new();
    // What is not cut is nothing else's label.
    for (label, cut) in labels.iter().zip(&cuts).filter(|(label, cut)| label == cut) {
        owners.insert(cut.clone(), label);
    }
    let mut fitted = Vec::with_capacity(labels.len());
    for (label, cut) in labels.iter().zip(cuts) {
        let numbered = (2..).map(|number| {
            let behind = format!(" ({number})");
            fitted_middle(label, width - text_width(&behind)) + &behind
        });
        let is_free = |cut: &String| owners.get(cut).is_none_or(|owner| *owner == label);
        let cut = std::iter::once(cut.clone()).chain(numbered).find(is_free).unwrap_or(cut);
        owners.insert(cut.clone(), label);
        fitted.push(cut);
    }
    fitted
}

/// The text, its middle left out where it is wider.
pub(super) fn fitted_middle(text: &str, width: f64) -> String {
    fitted_around(text, width, None)
}

/// The text; where it is wider, only its beginning, its end, and what stands at a place.
fn fitted_around(text: &str, width: f64, place: Option<usize>) -> String {
    let mut most = text.chars().count();
    let mut cut = text.to_owned();
    while text_width(&cut) > width && most > 1 {
        most = (most - 1).min((width / text_width("x")).max(1.0) as usize);
        cut = shortened(text, most, place);
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILL: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> >(int, at::native::FillFunctor<float>, at::detail::Array<char*, 1>)";
    const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 1> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 1>)";
    const ADD_HALF: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>, at::detail::Array<char*, 1> >(int, at::native::CUDAFunctor_add<c10::Half>, at::detail::Array<char*, 1>)";
    const COPY: &str = "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#14}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int, at::native::gpu_kernel_impl<int>)";

    #[test]
    fn long_names_are_short_for_people() {
        for (name, expected) in [
            ("gemm", "gemm"),
            (
                "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
                "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t",
            ),
            ("execute_context_1(888_788544)_generation_0(0)", "execute_context_1(888_788544)_generation_0(0)"),
            ("at::native::foo<int>(int)", "at::native::foo<int>(int)"),
            (FILL, "vectorized_elementwise_kernel"),
            (COPY, "elementwise_kernel"),
            (
                "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int)",
                "multimem_all_reduce_kernel",
            ),
            (
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            ),
            (
                "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
                "evaluate_function: AccumulateGrad",
            ),
            ("autograd::engine::evaluate_function: AddmmBackward0", "evaluate_function: AddmmBackward0"),
            ("std::vector<int, std::allocator<int> >::operator[](unsigned long) const", "operator[]"),
            (
                "at::native::sum_functor<float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}",
                "sum_functor::{lambda#1}",
            ),
            ("std::enable_if<(1 < 2), void>::type thrust::for_each<int>(int)", "for_each"),
            ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFu", "vectorized_elementwise_kernel"),
            ("torch/nn/modules/module.py(1951): __getattr__", "module.py(1951): __getattr__"),
            ("torch/utils/and/more/cuda/__init__.py(382): _lazy_init", "cuda/__init__.py(382): _lazy_init"),
            ("/usr/include/x86_64-linux-gnu/c++/12/bits/c++config.h", "c++config.h"),
            ("<built-in method numel of Tensor object at 0x7fdc681d0910>", "<built-in method numel of Tensor>"),
            (
                "Wait until all of the (many) workers of a < b are there",
                "Wait until all of the (many) workers of a < b are there",
            ),
            ("https://example.com/a/long/address/of/something", "https://example.com/a/long/address/of/something"),
        ] {
            assert_eq!(Labels::default().of(std::iter::once(name)), [expected], "{name}");
        }
    }

    #[test]
    fn names_that_would_be_alike_keep_what_differs() {
        let mut labels = Labels::default();
        let of = |labels: &mut Labels, names: &[&str]| labels.of(names.iter().copied());
        assert_eq!(
            of(&mut labels, &[FILL, ADD, FILL]),
            [
                "vectorized_elementwise_kernel<FillFunctor>",
                "vectorized_elementwise_kernel<CUDAFunctor_add>",
                "vectorized_elementwise_kernel<FillFunctor>"
            ]
        );
        assert_eq!(
            of(&mut Labels::default(), &[ADD_HALF, ADD]),
            ["vectorized_elementwise_kernel<Half>", "vectorized_elementwise_kernel<float>"]
        );
        // A page goes on: what has a label keeps it, and a further name takes another one.
        let later = of(&mut labels, &[ADD, ADD_HALF]);
        assert_eq!(later[0], "vectorized_elementwise_kernel<CUDAFunctor_add>");
        assert_ne!(later[0], later[1]);
        // A name may be what another one is called for people.
        let mut labels = Labels::default();
        assert_ne!(of(&mut labels, &["for_each", "void thrust::for_each<int, int, int, int>(int)"])[1], "for_each");
    }

    #[test]
    fn any_names_have_labels_of_their_own() {
        let long = |n: usize| format!("Cijk_{}_{n}_{}", "a".repeat(60), "b".repeat(60));
        let mut names: Vec<String> = (0..30).map(long).collect();
        let odd =
            ["", "<", "(", "a<b", "a::", "::", "a<b>::(", "{", "a::{", "void ", "<>::<>", "x at 0x>", "/", "é::é<é>("];
        names.extend(odd.map(str::to_owned));
        names.extend(odd.map(|odd| odd.repeat(40)));
        let labels = Labels::default().of(names.iter().map(String::as_str));
        let distinct: HashSet<&String> = labels.iter().collect();
        assert_eq!(distinct.len(), names.iter().collect::<HashSet<_>>().len());
        assert!(labels.iter().all(|label| label.chars().count() <= LABEL_MAX), "{labels:?}");
    }

    #[test]
    fn what_differs_in_the_middle_stays() {
        let kernel = |tile: &str| {
            format!(
                "Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_{tile}_SN_LDSB0_AFC1_AFEM1_ASEM1_CLR1_WSGRA0_WSGRB0_WG16_4_4"
            )
        };
        let names = ["MT64x16x256_MI16x16x1", "MT32x16x256_MI16x16x1", "MT64x16x512_MI16x16x1"].map(kernel);
        let labels = Labels::default().of(names.iter().map(String::as_str));
        assert_eq!(
            labels,
            [
                "Cijk_Alik_Bljk…T64x16x256_MI16x16x1_SN_LDSB…SGRB0_WG16_4_4",
                "Cijk_Alik_Bljk…Args_MT32x16x256_MI16x16x1_S…SGRB0_WG16_4_4",
                "Cijk_Alik_Bljk…T64x16x512_MI16x16x1_SN_LDSB…SGRB0_WG16_4_4"
            ]
        );
        let fitted = fitted_apart(&names, 200.0);
        assert!(fitted.iter().all(|label| text_width(label) <= 200.0 && !label.contains('(')), "{fitted:?}");
        assert!(fitted[0].contains("x256_") && fitted[1].contains("MT32") && fitted[2].contains("x512_"), "{fitted:?}");
    }

    #[test]
    fn what_is_cut_can_be_told_apart() {
        let labels: Vec<String> = ["copy_kernel_of_a", "copy_kernel_of_b", "gemm", "gemv"].map(str::to_owned).to_vec();
        let cuts = Cuts::new(labels.iter().map(String::as_str));
        assert_eq!(cuts.fit("gemm", 100.0).as_deref(), Some("gemm"));
        // Its first 15 characters are those of another one.
        assert_eq!(cuts.fit("copy_kernel_of_a", 60.0).as_deref(), Some("…nel_of_a"));
        assert_eq!(cuts.fit("gemm", 12.0), None);
        let apart = fitted_apart(&labels, 60.0);
        assert_eq!(apart, ["copy…of_a", "copy…of_b", "gemm", "gemv"]);
        let long: Vec<String> = (0..12).map(|n| format!("{}{n}{}", "x".repeat(40), "y".repeat(40))).collect();
        let apart = fitted_apart(&long, 100.0);
        assert_eq!(apart.iter().collect::<HashSet<_>>().len(), 12, "{apart:?}");
        assert!(apart.iter().all(|label| text_width(label) <= 100.0));
    }
}
