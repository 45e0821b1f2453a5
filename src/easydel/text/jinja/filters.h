// Shared by the files of filters: reads arguments by position or name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "easydel/text/jinja/interpreter.h"

namespace easydel::text::jinja {

const Var* given(const Arguments& arguments, size_t position, std::string_view name);
bool flag(const Arguments& arguments, size_t position, std::string_view name, bool fallback);
int64_t number(const Arguments& arguments, size_t position, std::string_view name, int64_t fallback);
std::string text(const Arguments& arguments, size_t position, std::string_view name, std::string fallback);

std::span<const NamedFilter> list_filters();
std::span<const NamedFilter> text_filters();

// Failure if a filter or a test (by its canonical name) gets arguments that it does not accept.
void check_filter_arguments(std::string_view name, const Arguments& arguments);
void check_test_arguments(std::string_view name, const Arguments& arguments);

}  // namespace easydel::text::jinja
