// Orders between ranks: what is written is read, and nothing damaged is.
#include "easydel/esurge/rank_order.h"

#include <gtest/gtest.h>

#include <vector>

#include "easydel/base/error.h"
#include "easydel/esurge/step_message.h"

namespace easydel::esurge {
namespace {

const std::vector<RankOrder>& orders() {
  static const std::vector<RankOrder> all = {LoadAdapter{7, "adapters/one", "digest"},
                                             AddAdapterSum{9, true, {{7, 0.5}, {8, -2}}},
                                             LoadWeights{"weights/new"},
                                             ReceiveWeights{"{\"vocab_size\": 96}"},
                                             DescribeWeights{true},
                                             DescribeWeights{false},
                                             ChooseWeights{true},
                                             ChooseWeights{false},
                                             SaveCache{"cache", "fp_1", "index", {{3, 1}, {}, {7}}},
                                             OpenCache{"cache", "fp_1", "digest"},
                                             PlaceCache{{{0, 1, 2}, {2, 0, 5}}},
                                             ChangeWeights{}};
  return all;
}

TEST(RankOrder, IsReadAsItWasWritten) {
  for (const RankOrder& order : orders()) {
    const std::string bytes = encode(order);
    EXPECT_TRUE(is_order(bytes));
    EXPECT_EQ(decode_order(bytes), order);
  }
  EXPECT_FALSE(is_order(encode_step(1, {}, {}, {})));
  EXPECT_FALSE(is_order(""));
}

TEST(RankOrder, IsRefusedWhereverAByteOfItIsDamaged) {
  for (const RankOrder& order : orders()) {
    const std::string bytes = encode(order);
    for (size_t i = 0; i < bytes.size(); ++i) {
      std::string damaged = bytes;
      damaged[i] = char(damaged[i] ^ 0x10);
      EXPECT_THROW(decode_order(damaged), UserError);
      EXPECT_THROW(decode_order(bytes.substr(0, i)), UserError);
    }
  }
}

}  // namespace
}  // namespace easydel::esurge
