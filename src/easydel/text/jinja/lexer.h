// Splits a template's source into tokens, with Jinja2's whitespace rules (trim_blocks and lstrip_blocks on).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace easydel::text::jinja {

struct Lexeme {
  enum class Kind : uint8_t {
    data,
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    text,
    integer,
    number,
    symbol,
    end
  };
  Kind kind;
  std::string text;  // data, name, string (decoded), number or symbol
  int line, column;  // from 1
};

// UserError "name:line:column: ...": a syntax error.
std::vector<Lexeme> lex(std::string_view source, const std::string& name);

}  // namespace easydel::text::jinja
