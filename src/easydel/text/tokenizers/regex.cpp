// Runs Oniguruma or the faster matcher.
#include "easydel/text/tokenizers/regex.h"

#include <oniguruma.h>

#include <mutex>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/regex_classes.h"
#include "easydel/text/tokenizers/split_pattern.h"

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
  std::unique_ptr<const SplitPattern> fast;
  regex_t* compiled = nullptr;
  ~Impl() {
    if (compiled) onig_free(compiled);
  }
};

Regex::Regex(const std::string& pattern, Engine engine) : impl_(std::make_unique<Impl>()) {
  if (engine == Engine::fastest) impl_->fast = SplitPattern::compile(pattern);
  if (impl_->fast) return;
  static std::mutex lock;  // compiling is not thread-safe, matching is
  std::lock_guard guard(lock);
  static const int ready = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(encodings, 1);
  }();
  (void)ready;
  impl_->pattern = pattern;
  OnigErrorInfo info;
  const std::string spelled = spelled_out(pattern);
  int status = onig_new(&impl_->compiled, bytes(spelled.data()), bytes(spelled.data() + spelled.size()),
                        ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY, &info);
  if (status != ONIG_NORMAL) {
    impl_->compiled = nullptr;
    OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
    onig_error_code_to_str(text, status, &info);
    refuse("tokenizer.json",
           str("the pattern '", pattern, "' cannot be compiled: ", reinterpret_cast<const char*>(text)),
           "it must be a regular expression of Oniguruma");
  }
}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

bool Regex::is_fast() const { return impl_->fast != nullptr; }

bool Regex::matches_at_start(std::string_view text) const {
  const OnigUChar *begin = bytes(text.data()), *end = begin + text.size();
  return onig_match(impl_->compiled, begin, end, begin, nullptr, ONIG_OPTION_NONE) >= 0;
}

// Finds the leftmost match from `at` on; false: none.
bool Regex::search(std::string_view text, size_t at, bool mapped, size_t& from, size_t& to) const {
  if (impl_->fast) {
    for (from = at;;) {
      to = mapped ? impl_->fast->match_mapped(text, from) : impl_->fast->match(text, from);
      if (to != SplitPattern::none) return true;
      if (from >= text.size()) return false;
      from += mapped ? 1 : utf8_length(static_cast<unsigned char>(text[from]));
    }
  }
  thread_local Region found;
  const OnigUChar *begin = bytes(text.data()), *end = begin + text.size();
  int status = onig_search(impl_->compiled, begin, end, begin + at, end, found.region, ONIG_OPTION_NONE);
  if (status == ONIG_MISMATCH) return false;
  if (status < 0) refuse("tokenizer", str("the pattern '", impl_->pattern, "' gives up on this text"));
  from = size_t(found.region->beg[0]);
  to = size_t(found.region->end[0]);
  return true;
}

template <class Add>
void Regex::each_part(std::string_view text, bool mapped, Add&& add) const {
  if (text.empty()) return;  // upstream does not search an empty text, not even for an empty match
  size_t last = 0, from = 0, to = 0;
  bool matched_before = false;
  for (size_t at = 0; at <= text.size() && search(text, at, mapped, from, to);) {
    if (from == to) {
      // An empty match directly after another match is ignored; continue one character later.
      at = to >= text.size() ? to + 1 : to + (mapped ? 1 : utf8_length(static_cast<unsigned char>(text[to])));
      if (matched_before && from == last) continue;
    } else {
      at = to;
    }
    if (from > last) add(last, from, false);
    add(from, to, true);
    last = to;
    matched_before = true;
  }
  if (last < text.size()) add(last, text.size(), false);
}

void Regex::find_all(std::string_view text, std::vector<Segment>& out) const {
  each_part(text, false, [&](size_t from, size_t to, bool match) {
    out.push_back({uint32_t(from), uint32_t(to), match});
  });
}

void Regex::cut(std::string_view text, bool mapped, std::vector<uint32_t>& ends) const {
  each_part(text, mapped, [&](size_t from, size_t to, bool) {
    if (from < to) ends.push_back(uint32_t(to));
  });
}

void Pattern::find_all(std::string_view text, std::vector<Segment>& out) const {
  if (regex) return regex->find_all(text, out);
  size_t last = 0;
  if (!literal.empty())
    for (size_t at; (at = text.find(literal, last)) != std::string_view::npos; last = at + literal.size()) {
      if (at > last) out.push_back({uint32_t(last), uint32_t(at), false});
      out.push_back({uint32_t(at), uint32_t(at + literal.size()), true});
    }
  if (last < text.size()) out.push_back({uint32_t(last), uint32_t(text.size()), false});
}

}  // namespace easydel::text
