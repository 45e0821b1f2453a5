// Functions over rows, by the names that preprocessing_fn, format_callback and tokenize_callback give them: from
// plug-ins, and from programs that use the library.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "easydel/base/document.h"

namespace easydel::data {

// Makes a new row of a row's fields, both maps. nullopt: the row is left out. It is called by one thread at a time for
// each source of rows; what it answers should depend on the row alone. UserError: the row is wrong; the row's place is
// added to its text.
using RowFunction = std::function<std::optional<Value>(const Value& fields)>;

// `library`: the plug-in that has the function; its contents are part of the keys of token stores. Empty: the program
// itself. Before a run is read. UserError if the name is taken, or ends in .jinja.
void register_row_function(const std::string& name, RowFunction function, const std::filesystem::path& library = {});

const RowFunction* find_row_function(const std::string& name);  // nullptr: there is none
// "there are: a, b", or that a plug-in has to be loaded; for messages.
std::string row_function_remedy();

// Whether a key of the mixture names a template's file rather than a function.
bool is_row_template(const std::string& function);
// What identifies the code of a template's file or of a function: a digest of the file or of the plug-in.
std::string code_digest(const std::string& function);

}  // namespace easydel::data
