#include "easydel/probe/core.h"

#include "easydel/elarge/core.h"

namespace easydel::probe {

Core& core() {
  using Entry = Core* (*)();
  static Core& one = *reinterpret_cast<Entry>(elarge::core_symbol("easydel_probe_entry"))();
  return one;
}

}  // namespace easydel::probe
