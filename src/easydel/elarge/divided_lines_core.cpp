#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/error_document.h"
#include "easydel/base/free_memory.h"
#include "easydel/elarge/divided_lines.h"

namespace easydel::elarge {
namespace {

enum class LineKind { scores, generates, costs_nothing };

LineKind kind_of(const std::string& line) {
  Value value;
  try {
    value = parse_json(line, "line");
  } catch (const UserError&) {
    return LineKind::costs_nothing;
  }
  const auto has = [&](const char* key) { return value.is_map() && value.find(key) != nullptr; };
  if (has("about") || has("messages") || has("windows")) return LineKind::costs_nothing;
  if (has("continuation_ids") || has("continuation") || has("text")) return LineKind::scores;
  return has("context") || has("context_ids") ? LineKind::generates : LineKind::costs_nothing;
}

// Divides the lines of a kind into as many neighbouring parts as `axes` has, with about as many bytes each.
struct Division {
  Division(const collective::Team& team, mesh::Axes axes)
      : parts(team.mesh().size(axes)),
        own(team.mesh().index(axes, team.rank())),
        is_first(team.mesh().index(team.mesh().others(axes), team.rank()) == 0) {}

  void add(size_t line, size_t bytes) {
    lines.push_back(line);
    ends.push_back((ends.empty() ? 0 : ends.back()) + bytes);
  }
  // The part of the i-th of its lines.
  int64_t part(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends[i - 1], middle = (begin + ends[i]) / 2;
    return std::min(parts - 1, int64_t(middle * size_t(parts) / std::max<size_t>(ends.back(), 1)));
  }

  int64_t parts, own;
  bool is_first;  // the first of the ranks with this part
  std::vector<size_t> lines = {}, ends = {};
};

// The texts of all ranks, on every rank.
std::vector<std::string> exchanged(const collective::Group& group, const std::string& text) {
  const Tensor sizes = group.all_gather(at::full({1}, int64_t(text.size()), at::kLong), 0);
  const int64_t longest = std::max<int64_t>(1, sizes.max().item<int64_t>());
  const Tensor own = at::full({1, longest}, 0, at::kByte);
  std::memcpy(own.data_ptr(), text.data(), text.size());
  const Tensor all = group.all_gather(own, 0);
  std::vector<std::string> out;
  for (int64_t rank = 0; rank < group.size(); ++rank)
    out.emplace_back(static_cast<const char*>(all.const_data_ptr()) + rank * longest,
                     size_t(sizes[rank].item<int64_t>()));
  return out;
}

}  // namespace

void answer_divided(const collective::Team& team, const std::vector<std::string>& lines, const AnswerOwnLines& answer,
                    const OnLineAnswer& on_answer) {
  Division scored(team, mesh::batch_axes()), generated(team, {"dp"});
  if (scored.parts == 1) return answer(lines, on_answer);
  std::vector<bool> is_own(lines.size(), true), is_sent(lines.size(), false);
  for (size_t i = 0; i < lines.size(); ++i) {
    const LineKind kind = kind_of(lines[i]);
    if (kind == LineKind::scores) scored.add(i, lines[i].size());
    if (kind == LineKind::generates) generated.add(i, lines[i].size());
  }
  for (const Division* const division : {&scored, &generated})
    for (size_t i = 0; i < division->lines.size(); ++i) {
      is_own[division->lines[i]] = division->part(i) == division->own;
      is_sent[division->lines[i]] = is_own[division->lines[i]] && division->is_first;
    }
  std::vector<std::string> own;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < lines.size(); ++i)
    if (is_own[i]) own.push_back(lines[i]), numbers.push_back(i);
  Value message = Value::map(), answers = Value::list();
  try {
    answer(own, [&](size_t line, const std::string& text) {
      if (is_sent[numbers[line]]) {
        answers.items.push_back(Value::integer(int64_t(numbers[line])));
        answers.items.push_back(Value::text(text));
      }
      on_answer(numbers[line], text);
    });
  } catch (const UserError& error) {
    message.set("failed", error_document(error));
  }
  message.set("answers", std::move(answers));
  for (const std::string& text : exchanged(team.all(), to_json(message))) {
    const Value other = parse_json(text, "another rank's answers");
    if (const Value* const failed = other.find("failed")) rethrow(*failed);
    const std::vector<Value>& given = other.find("answers")->items;
    for (size_t i = 0; i + 1 < given.size(); i += 2)
      if (const auto line = size_t(given[i].as_int().value()); !is_own[line]) on_answer(line, given[i + 1].scalar);
  }
}

generation::RankExchange state_exchange(const collective::Team& team) {
  if (team.size() == 1) return nullptr;
  return [&team](generation::RankState own) {
    const Tensor state = at::full({1}, int64_t(own), at::kLong);
    team.all().all_reduce(state, collective::Reduce::max);
    return generation::RankState(state.item<int64_t>());
  };
}

int64_t common_cache_bytes(const collective::Team& team, double share) {
  if (team.size() == 1) return 0;
  const auto memory = free_memory();
  const double own = share / double(team.size());
  const Tensor most = at::full({1}, memory ? -int64_t(own * double(memory->bytes)) : -(int64_t{1} << 30), at::kLong);
  team.all().all_reduce(most, collective::Reduce::max);
  return std::max<int64_t>(1, -most.item<int64_t>());
}

}  // namespace easydel::elarge
