#include "easydel/esurge/rank_order.h"

#include "easydel/base/error.h"
#include "easydel/esurge/message_bytes.h"

namespace easydel::esurge {
namespace {

constexpr std::string_view order_kind = "easydel order 3";

void write(MessageWriter& to, const LoadAdapter& order) {
  to.number(order.number);
  to.text(order.folder);
  to.text(order.digest);
}
void read(MessageReader& from, LoadAdapter& order) {
  order.number = from.number<uint64_t>();
  order.folder = from.text();
  order.digest = from.text();
}

void write(MessageWriter& to, const AddAdapterSum& order) {
  to.number(order.number);
  to.number(int64_t(order.linear));
  to.number(int64_t(order.shares.size()));
  for (const auto& [number, weight] : order.shares) {
    to.number(number);
    to.number(weight);
  }
}
void read(MessageReader& from, AddAdapterSum& order) {
  order.number = from.number<uint64_t>();
  order.linear = from.between(0, 1, "a flag") != 0;
  order.shares.resize(from.count(sizeof(uint64_t) + sizeof(double)));
  for (auto& [number, weight] : order.shares) {
    number = from.number<uint64_t>();
    weight = from.number<double>();
  }
}

void write(MessageWriter& to, const LoadWeights& order) { to.text(order.folder); }
void read(MessageReader& from, LoadWeights& order) { order.folder = from.text(); }

void write(MessageWriter& to, const ReceiveWeights& order) { to.text(order.config); }
void read(MessageReader& from, ReceiveWeights& order) { order.config = from.text(); }

void write(MessageWriter& to, const DescribeWeights& order) { to.number(int64_t(order.contents)); }
void read(MessageReader& from, DescribeWeights& order) { order.contents = from.between(0, 1, "a flag") != 0; }

void write(MessageWriter& to, const ChooseWeights& order) { to.number(int64_t(order.new_ones)); }
void read(MessageReader& from, ChooseWeights& order) { order.new_ones = from.between(0, 1, "a flag") != 0; }

void write(MessageWriter& to, const SaveCache& order) {
  for (const std::string* text : {&order.folder, &order.weights, &order.index}) to.text(*text);
  to.number(int64_t(order.ids.size()));
  for (const std::vector<int32_t>& group : order.ids) {
    to.number(int64_t(group.size()));
    for (const int32_t page : group) to.number(page);
  }
}
void read(MessageReader& from, SaveCache& order) {
  for (std::string* text : {&order.folder, &order.weights, &order.index}) *text = from.text();
  order.ids.resize(from.count(sizeof(int64_t)));
  for (std::vector<int32_t>& group : order.ids) {
    group.resize(from.count(sizeof(int32_t)));
    for (int32_t& page : group) page = from.number<int32_t>();
  }
}

void write(MessageWriter& to, const OpenCache& order) {
  for (const std::string* text : {&order.folder, &order.weights, &order.index_digest}) to.text(*text);
}
void read(MessageReader& from, OpenCache& order) {
  for (std::string* text : {&order.folder, &order.weights, &order.index_digest}) *text = from.text();
}

void write(MessageWriter& to, const PlaceCache& order) {
  to.number(int64_t(order.pages.size()));
  for (const PrefixIndex::Restored& page : order.pages)
    for (const int32_t number : {int32_t(page.group), page.number, page.page}) to.number(number);
}
void read(MessageReader& from, PlaceCache& order) {
  order.pages.resize(from.count(3 * sizeof(int32_t)));
  for (PrefixIndex::Restored& page : order.pages) {
    page.group = from.number<int32_t>();
    page.number = from.number<int32_t>();
    page.page = from.number<int32_t>();
  }
}

void write(MessageWriter& /*to*/, const ChangeWeights& /*order*/) {}
void read(MessageReader& /*from*/, ChangeWeights& /*order*/) {}

template <size_t at = 0>
RankOrder read_order(MessageReader& from, size_t index) {
  if constexpr (at < std::variant_size_v<RankOrder>) {
    if (index != at) return read_order<at + 1>(from, index);
    std::variant_alternative_t<at, RankOrder> order;
    read(from, order);
    return order;
  } else {
    throw Bug("an order between ranks");
  }
}

}  // namespace

std::string encode(const RankOrder& order) {
  MessageWriter to(order_kind);
  to.number(int64_t(order.index()));
  std::visit([&](const auto& one) { write(to, one); }, order);
  return to.finish();
}

bool is_order(std::string_view bytes) { return is_message(bytes, order_kind); }

RankOrder decode_order(std::string_view bytes) {
  MessageReader from(bytes, order_kind);
  const int64_t last = int64_t(std::variant_size_v<RankOrder>) - 1;
  RankOrder out = read_order(from, size_t(from.between(0, last, "a kind of order")));
  from.finish();
  return out;
}

}  // namespace easydel::esurge
