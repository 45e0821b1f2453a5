#!/usr/bin/env python3
"""Writes src/easydel/text/unicode_tables.cpp by querying the `tokenizers` package about each code point.

The package mixes several versions of Unicode (its regex engine's, Rust's, and older tables for punctuation, marks
and normalization), so the only correct table is the package's own answers.
Usage: make_unicode_tables.py unicode_tables.cpp unicode_scripts.cpp unicode_graphemes.cpp
"""
import ctypes
import struct
import sys

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
CHARS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
TEXT = "".join(CHARS)
ALL = set(CHARS)


def regex_class(pattern):
    return ALL - set(normalizers.Replace(Regex(pattern), "").normalize_str(TEXT))


def isolated(pre_tokenizer):
    found = set()
    for i in range(0, len(CHARS), 4096):
        for text, (begin, end) in pre_tokenizer.pre_tokenize_str("\ue000".join(CHARS[i:i + 4096])):
            if end - begin == 1 and text != "\ue000":
                found.add(text)
    return found


def runs(value_of):
    rows, last = [], None
    for c in range(0x110000):
        value = value_of(chr(c)) if not 0xD800 <= c < 0xE000 else 0
        if value != last:
            rows.append((c, value))
            last = value
    return rows


def rows_of(code_points):
    rows = []
    for c in sorted(code_points):
        if rows and rows[-1][1] == c - 1:
            rows[-1][1] = c
        else:
            rows.append([c, c])
    return rows


def scripts():
    """Numbers by code point: which script UnicodeScripts sees; 0 for none."""
    cut = pre_tokenizers.UnicodeScripts()
    some = [c for c in CHARS if cut.pre_tokenize_str(c)]  # a text without any script is dropped
    number, known = {}, []
    for piece, _ in cut.pre_tokenize_str("".join(some)):
        index = next((i for i, c in enumerate(known) if len(cut.pre_tokenize_str(c + piece[0])) == 1), None)
        if index is None:
            index = len(known)
            known.append(piece[0])
        for c in piece:
            number[c] = index + 1
    return runs(lambda c: number.get(c, 0))


def charsmap_of_first_bytes():
    """A SentencePiece character map that makes one P of whatever begins with an "a" or a byte above 127."""
    units = [0] * 1280
    units[0] = 512 << 10  # the root's children stand at 512 ^ byte
    for first in (ord("a"), *range(0xC2, 0xF5)):
        units[512 ^ first] = first | 1 << 8 | ((512 ^ first) ^ 1024) << 10  # a word ends here; its value stands at 1024
    units[1024] = 1 << 31
    blob = struct.pack("<%dI" % len(units), *units)
    return struct.pack("<I", len(blob)) + blob + b"P\0"


GRAPHEME_CLASSES = "other control extend spacing prepend pictograph consonant linker conjunct_extend".split()


def grapheme_classes():
    """Class by code point, from how Precompiled groups characters: it looks a cluster of less than six bytes up as a whole."""
    normalizer = normalizers.Precompiled(charsmap_of_first_bytes())
    assert [normalizer.normalize_str(t) for t in ("b\u00e9\u0301x", "a\u0301\u0302\u0303")] == ["bPx", "PPPP"]

    def those(before, after, wanted):
        """Code points that add so many to the P of `before` and `after`, of which each character gives one where nothing is joined."""
        found = set()
        for begin in range(0, len(CHARS), 4096):
            some = [c for c in CHARS[begin:begin + 4096] if c not in "\nP"]
            answers = normalizer.normalize_str("\n".join(before + c + after for c in some)).split("\n")
            for c, answer in zip(some, answers, strict=True):
                if answer.count("P") - (c >= "\x80" or c == "a") == wanted:
                    found.add(c)
        return found

    joined = those("a", "", 0)
    control = {"\n"} | those("", "\u0301\u0302", 1)  # marks stand alone behind it
    extend = joined & those("\u00a9", "\u200d\u00a9\u0301", 4)  # may stand between pictographs
    linker = joined & those("\u0915", "\u0937\u0301", 3)  # joins consonants
    conjunct = joined & those("\u0915", "\u094d\u0937\u0301", 4) - linker  # may stand between them
    sets = [control, extend, joined, those("", "a", 0), those("\u00a9\u200d", "", 2) - joined, those("", "\u094d\u0937\u0301", 3) - joined]
    number = {c: 0 for c in CHARS}
    for index, members in reversed(list(enumerate(sets, 1))):
        number.update(dict.fromkeys(members, index))
    number.update(dict.fromkeys(linker, 7) | dict.fromkeys(conjunct, 8))
    return runs(lambda c: number[c])


def main():
    category = {}
    for index, name in enumerate(CATEGORIES):
        for c in regex_class(r"\p{%s}" % name):
            category[c] = index
    word = regex_class(r"\w") - set("²³¹¼½¾")  # word characters to the regex engine, not to Rust
    punctuation = isolated(pre_tokenizers.Punctuation("isolated"))
    marks = ALL - set(normalizers.StripAccents().normalize_str(TEXT))
    flags = runs(lambda c: category[c] | (c in word) << 5 | (c in punctuation) << 6 | (c in marks) << 7)

    lower = {}
    for c in CHARS:
        small = normalizers.Lowercase().normalize_str(c)
        if small != c and len(small) == 1:
            lower[ord(c)] = ord(small)
    lower_rows = []  # first, last, step, difference
    for c, small in sorted(lower.items()):
        row = lower_rows[-1] if lower_rows else None
        if row and small - c == row[3] and c - row[1] in (1, 2) and row[2] in (0, c - row[1]):
            row[2], row[1] = c - row[1], c
        else:
            lower_rows.append([c, c, 0, small - c])

    def erased_by_bert(**options):
        settings = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False, **{})
        settings.update(options)
        normalizer = normalizers.BertNormalizer(**settings)
        return {c for c in CHARS if normalizer.normalize_str(c) == ""}

    by_rule = {c for c in CHARS if CATEGORIES[category[c]] in ("Mn", "Cc", "Cf", "Co") and c not in "\t\n\r"}
    erased = erased_by_bert(clean_text=True) | erased_by_bert(strip_accents=True)
    kept_rows = rows_of(ord(c) for c in by_rule - erased)

    library = ctypes.CDLL("libutf8proc.so.2")
    undecomposed = set()
    for form in ("NFD", "NFKD"):
        function = getattr(library, "utf8proc_" + form)
        function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
        for c in CHARS[1:]:
            if getattr(normalizers, form)().normalize_str(c) == c and ctypes.string_at(function(c.encode())).decode() != c:
                undecomposed.add(ord(c))
    undecomposed_rows = rows_of(undecomposed)

    script_rows, grapheme_rows = scripts(), grapheme_classes()

    def block(items, per_line):
        lines = [", ".join(items[i:i + per_line]) for i in range(0, len(items), per_line)]
        return "\n".join("    " + line + "," for line in lines)

    with open(sys.argv[1], "w") as out:
        out.write("// What each code point is to Hugging Face's tokenizers %s: written by scripts/make_unicode_tables.py.\n"
                  % tokenizers.__version__)
        out.write('#include "easydel/text/unicode_tables.h"\n\nnamespace easydel::text::tables {\n\n// clang-format off\n')
        out.write("const uint32_t runs[] = {\n%s\n};\nconst size_t run_count = sizeof(runs) / sizeof(runs[0]);\n\n"
                  % block(["0x%x" % (c << 8 | v) for c, v in flags], 12))
        out.write("const Lower lower[] = {\n%s\n};\nconst size_t lower_count = sizeof(lower) / sizeof(lower[0]);\n\n"
                  % block(["{0x%x, 0x%x, %d, %d}" % (a, b, max(s, 1), d) for a, b, s, d in lower_rows], 5))
        out.write("const Range undecomposed[] = {\n%s\n};\nconst size_t undecomposed_count = sizeof(undecomposed) / sizeof(undecomposed[0]);\n"
                  % block(["{0x%x, 0x%x}" % (a, b) for a, b in undecomposed_rows], 8))
        out.write("\nconst Range kept_by_bert[] = {\n%s\n};\nconst size_t kept_by_bert_count = sizeof(kept_by_bert) / sizeof(kept_by_bert[0]);\n"
                  % block(["{0x%x, 0x%x}" % (a, b) for a, b in kept_rows], 8))
        out.write("// clang-format on\n\n}  // namespace easydel::text::tables\n")
    with open(sys.argv[2], "w") as out:
        out.write("// Which script each code point is to the pre-tokenizer UnicodeScripts: written by scripts/make_unicode_tables.py.\n")
        out.write('#include "easydel/text/unicode_tables.h"\n\nnamespace easydel::text::tables {\n\n// clang-format off\n')
        out.write("const uint32_t scripts[] = {\n%s\n};\nconst size_t script_count = sizeof(scripts) / sizeof(scripts[0]);\n"
                  % block(["0x%x" % (c << 8 | v) for c, v in script_rows], 14))
        out.write("// clang-format on\n\n}  // namespace easydel::text::tables\n")
    with open(sys.argv[3], "w") as out:
        out.write("// How each code point joins in a cluster to the normalizer Precompiled: written by scripts/make_unicode_tables.py.\n")
        out.write('#include "easydel/text/unicode_tables.h"\n\nnamespace easydel::text::tables {\n\n// clang-format off\n')
        out.write("const uint32_t graphemes[] = {\n%s\n};\nconst size_t grapheme_count = sizeof(graphemes) / sizeof(graphemes[0]);\n"
                  % block(["0x%x" % (c << 8 | v) for c, v in grapheme_rows], 14))
        out.write("// clang-format on\n\n}  // namespace easydel::text::tables\n")


main()
