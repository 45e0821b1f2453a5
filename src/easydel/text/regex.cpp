// Oniguruma behind a small face.
#include "easydel/text/regex.h"

#include <oniguruma.h>

#include <mutex>

#include "easydel/base/error.h"

namespace easydel::text {
namespace {

struct Region {
  OnigRegion* region = onig_region_new();
  ~Region() { onig_region_free(region, 1); }
};

const OnigUChar* bytes(const char* p) { return reinterpret_cast<const OnigUChar*>(p); }

}  // namespace

struct Regex::Impl {
  std::string pattern;
  regex_t* compiled = nullptr;
  ~Impl() {
    if (compiled) onig_free(compiled);
  }
};

Regex::Regex(const std::string& pattern) : impl_(std::make_unique<Impl>()) {
  static std::mutex lock;  // compiling is not thread-safe, matching is
  std::lock_guard guard(lock);
  static const int ready = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(encodings, 1);
  }();
  (void)ready;
  impl_->pattern = pattern;
  OnigErrorInfo info;
  int status = onig_new(&impl_->compiled, bytes(pattern.data()), bytes(pattern.data() + pattern.size()),
                        ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY, &info);
  if (status != ONIG_NORMAL) {
    impl_->compiled = nullptr;
    OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
    onig_error_code_to_str(text, status, &info);
    refuse("tokenizer", str("the pattern '", pattern, "' cannot be compiled: ", reinterpret_cast<const char*>(text)),
           "it must be a regular expression of Oniguruma");
  }
}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

void Regex::find_all(std::string_view text, std::vector<Part>& out) const {
  if (text.empty()) return;  // upstream looks for nothing there, not even for an empty match
  thread_local Region found;
  const OnigUChar *begin = bytes(text.data()), *end = begin + text.size();
  uint32_t last = 0;
  bool matched_before = false;
  for (size_t at = 0; at <= text.size();) {
    int status = onig_search(impl_->compiled, begin, end, begin + at, end, found.region, ONIG_OPTION_NONE);
    if (status == ONIG_MISMATCH) break;
    if (status < 0) refuse("tokenizer", str("the pattern '", impl_->pattern, "' gives up on this text"));
    auto from = static_cast<uint32_t>(found.region->beg[0]), to = static_cast<uint32_t>(found.region->end[0]);
    if (from == to) {
      // An empty match right after another does not count; go on one character later.
      at = to < text.size() ? to + utf8_length(static_cast<unsigned char>(text[to])) : to + 1;
      if (matched_before && from == last) continue;
    } else {
      at = to;
    }
    if (from > last) out.push_back({last, from, false});
    out.push_back({from, to, true});
    last = to;
    matched_before = true;
  }
  if (last < text.size()) out.push_back({last, static_cast<uint32_t>(text.size()), false});
}

void Pattern::find_all(std::string_view text, std::vector<Part>& out) const {
  if (regex) return regex->find_all(text, out);
  size_t last = 0;
  if (!literal.empty())
    for (size_t at; (at = text.find(literal, last)) != std::string_view::npos; last = at + literal.size()) {
      if (at > last) out.push_back({static_cast<uint32_t>(last), static_cast<uint32_t>(at), false});
      out.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(at + literal.size()), true});
    }
  if (last < text.size()) out.push_back({static_cast<uint32_t>(last), static_cast<uint32_t>(text.size()), false});
}

}  // namespace easydel::text
