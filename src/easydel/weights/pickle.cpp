#include "easydel/weights/pickle.h"

#include <array>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "easydel/base/error.h"
#include "easydel/weights/tensor_view.h"

namespace easydel::weights {
namespace {

constexpr const char* save_pickle_again =
    "the file is damaged or was not written by torch.save; fetch or save it again";
constexpr const char* as_safetensors = "save the model as safetensors";
constexpr size_t max_objects = 1u << 22;

enum class Kind : uint8_t { none, flag, integer, real, text, tuple, list, map, global, storage, tensor };

struct Object {
  Kind kind = Kind::none;
  int64_t number = 0;          // flag, integer; storage and tensor: its index
  std::string_view text = {};  // text; global: "torch FloatStorage"
  std::vector<Object*> items;  // tuple, list; map: key, value, key, value
};

enum class Global : uint8_t { dictionary, tensor, tensor_v3, parameter, size, storage, dtype };

struct KnownGlobal {
  std::string_view name;
  Global what;
  std::optional<DType> dtype = std::nullopt;
};
constexpr std::array globals = {
    KnownGlobal{"collections OrderedDict", Global::dictionary},
    KnownGlobal{"torch._utils _rebuild_tensor", Global::tensor},
    KnownGlobal{"torch._utils _rebuild_tensor_v2", Global::tensor},
    KnownGlobal{"torch._utils _rebuild_tensor_v3", Global::tensor_v3},
    KnownGlobal{"torch._utils _rebuild_parameter", Global::parameter},
    KnownGlobal{"torch Size", Global::size},
    KnownGlobal{"torch BoolStorage", Global::storage, DType::boolean},
    KnownGlobal{"torch ByteStorage", Global::storage, DType::u8},
    KnownGlobal{"torch CharStorage", Global::storage, DType::i8},
    KnownGlobal{"torch ShortStorage", Global::storage, DType::i16},
    KnownGlobal{"torch IntStorage", Global::storage, DType::i32},
    KnownGlobal{"torch LongStorage", Global::storage, DType::i64},
    KnownGlobal{"torch HalfStorage", Global::storage, DType::f16},
    KnownGlobal{"torch BFloat16Storage", Global::storage, DType::bf16},
    KnownGlobal{"torch FloatStorage", Global::storage, DType::f32},
    KnownGlobal{"torch DoubleStorage", Global::storage, DType::f64},
    KnownGlobal{"torch.storage UntypedStorage", Global::storage},
    KnownGlobal{"torch bool", Global::dtype, DType::boolean},
    KnownGlobal{"torch uint8", Global::dtype, DType::u8},
    KnownGlobal{"torch int8", Global::dtype, DType::i8},
    KnownGlobal{"torch int16", Global::dtype, DType::i16},
    KnownGlobal{"torch uint16", Global::dtype, DType::u16},
    KnownGlobal{"torch int32", Global::dtype, DType::i32},
    KnownGlobal{"torch uint32", Global::dtype, DType::u32},
    KnownGlobal{"torch int64", Global::dtype, DType::i64},
    KnownGlobal{"torch uint64", Global::dtype, DType::u64},
    KnownGlobal{"torch float16", Global::dtype, DType::f16},
    KnownGlobal{"torch bfloat16", Global::dtype, DType::bf16},
    KnownGlobal{"torch float32", Global::dtype, DType::f32},
    KnownGlobal{"torch float64", Global::dtype, DType::f64},
    KnownGlobal{"torch float8_e4m3fn", Global::dtype, DType::f8_e4m3},
    KnownGlobal{"torch float8_e5m2", Global::dtype, DType::f8_e5m2},
};

}  // namespace

// Objects live in one arena until the next pickle: cycles are harmless, and nothing is freed recursively.
struct Unpickler::Machine {
  std::string_view bytes;
  std::string file;
  size_t at = 0;
  std::deque<Object> arena;
  size_t copied = 0;
  std::vector<Object*> stack;
  std::vector<size_t> marks;
  std::unordered_map<uint32_t, Object*> memo;
  std::vector<PickledStorage> storages;
  std::vector<PickledTensor> tensors;

  [[noreturn]] void damaged(const std::string& what) const {
    refuse(file, str(what, " at byte ", at, " of its pickle"), save_pickle_again);
  }

  std::string_view take(uint64_t size) {
    if (size > bytes.size() - at) damaged("is truncated");
    const std::string_view out = bytes.substr(at, size);
    at += size;
    return out;
  }
  template <class T>
  T number() {
    T out;
    std::memcpy(&out, take(sizeof out).data(), sizeof out);
    return out;
  }
  std::string_view line() {
    const size_t end = bytes.find('\n', at);
    if (end == std::string_view::npos) damaged("is truncated");
    const std::string_view out = bytes.substr(at, end - at);
    at = end + 1;
    return out;
  }

  Object* make(Kind kind) {
    if (arena.size() >= max_objects)
      refuse(file, str("has more than ", max_objects, " objects in its pickle"), as_safetensors);
    arena.emplace_back().kind = kind;
    return &arena.back();
  }
  void push(Object* object) {
    if (stack.size() >= max_objects) damaged("piles up too much");
    stack.push_back(object);
  }
  void push_integer(Kind kind, int64_t value) {
    Object* const object = make(kind);
    object->number = value;
    push(object);
  }
  void push_text(std::string_view text) {
    Object* const object = make(Kind::text);
    object->text = text;
    push(object);
  }
  Object* top() {
    if (stack.size() <= (marks.empty() ? 0 : marks.back())) damaged("has nothing to work on");
    return stack.back();
  }
  Object* pop() {
    Object* const object = top();
    stack.pop_back();
    return object;
  }
  std::vector<Object*> pop_to_mark() {
    if (marks.empty()) damaged("has no mark");
    std::vector<Object*> out(stack.begin() + static_cast<ptrdiff_t>(marks.back()), stack.end());
    stack.resize(marks.back());
    marks.pop_back();
    return out;
  }
  void push_tuple(std::vector<Object*> items) {
    Object* const tuple = make(Kind::tuple);
    tuple->items = std::move(items);
    push(tuple);
  }
  void push_tuple(size_t count) {
    std::vector<Object*> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    push_tuple(std::move(items));
  }
  void extend(Kind kind, const std::vector<Object*>& items) {
    Object* const to = top();
    if (to->kind != kind || (kind == Kind::map && items.size() % 2 != 0)) damaged("fills no list or dictionary");
    to->items.insert(to->items.end(), items.begin(), items.end());
  }
  void remember(uint32_t index) { memo[index] = top(); }
  void recall(uint32_t index) {
    const auto found = memo.find(index);
    if (found == memo.end()) damaged("recalls what it did not keep");
    push(found->second);
  }

  void push_global(std::string_view name) {
    for (const KnownGlobal& known : globals)
      if (known.name == name) {
        Object* const object = make(Kind::global);
        object->number = int64_t(&known - globals.data());
        object->text = known.name;
        return push(object);
      }
    std::string dotted(name);
    if (const size_t space = dotted.find(' '); space != std::string::npos) dotted[space] = '.';
    refuse(file, "its pickle asks for " + in_quotes(dotted) + ", which is not part of a tensor; nothing was run",
           "do not load this file with other programs if you do not trust it; " + std::string(as_safetensors));
  }
  const KnownGlobal& global(const Object* object) {
    if (object->kind != Kind::global) damaged("calls something that is not a function");
    return globals[size_t(object->number)];
  }

  // ("storage", class, key, location, elements[, view]).
  void push_storage(const Object* id) {
    const auto& items = id->items;
    const bool well = id->kind == Kind::tuple && (items.size() == 5 || items.size() == 6) &&
                      items[0]->kind == Kind::text && items[0]->text == "storage" && items[2]->kind == Kind::text &&
                      items[4]->kind == Kind::integer && items[4]->number >= 0 &&
                      (items.size() == 5 || items[5]->kind == Kind::none);
    if (!well || global(items[1]).what != Global::storage) damaged("names a storage in an unknown way");
    storages.push_back({std::string(items[2]->text), global(items[1]).dtype, items[4]->number});
    push_integer(Kind::storage, int64_t(storages.size()) - 1);
  }

  std::vector<int64_t> sizes(const Object* object) {
    if (object->kind != Kind::tuple || object->items.size() > 64) damaged("has a shape that is none");
    std::vector<int64_t> out;
    for (const Object* item : object->items) {
      if (item->kind != Kind::integer || item->number < 0) damaged("has a shape that is none");
      out.push_back(item->number);
    }
    return out;
  }

  // (storage, offset, shape, strides, ...); v3 has the dtype after two more.
  void push_tensor(const Object* arguments, bool v3) {
    const auto& items = arguments->items;
    const bool well = items.size() >= (v3 ? 7u : 4u) && items[0]->kind == Kind::storage &&
                      items[1]->kind == Kind::integer && items[1]->number >= 0;
    if (!well) damaged("builds a tensor in an unknown way");
    PickledTensor tensor{storages[size_t(items[0]->number)], DType::f32, items[1]->number, sizes(items[2]),
                         sizes(items[3])};
    if (tensor.shape.size() != tensor.strides.size()) damaged("has a shape that is none");
    const std::optional<DType> dtype =
        v3 && global(items[6]).what == Global::dtype ? global(items[6]).dtype : tensor.storage.dtype;
    if (!dtype) damaged("has a tensor without a dtype");
    tensor.dtype = *dtype;
    tensors.push_back(std::move(tensor));
    push_integer(Kind::tensor, int64_t(tensors.size()) - 1);
  }

  void reduce() {
    Object* const arguments = pop();
    const KnownGlobal& function = global(pop());
    if (arguments->kind != Kind::tuple) damaged("calls a function in an unknown way");
    switch (function.what) {
      case Global::dictionary: {
        Object* const map = make(Kind::map);
        // Empty, or a list of pairs.
        if (!arguments->items.empty())
          for (const Object* pair : arguments->items[0]->items) {
            if (pair->items.size() != 2) damaged("has a dictionary that is none");
            // A memoized list could be copied again and again by a few bytes.
            if (++copied > max_objects)
              refuse(file, str("copies more than ", max_objects, " entries in its pickle"), as_safetensors);
            map->items.insert(map->items.end(), pair->items.begin(), pair->items.end());
          }
        return push(map);
      }
      case Global::tensor:
      case Global::tensor_v3:
        return push_tensor(arguments, function.what == Global::tensor_v3);
      case Global::parameter:
        if (arguments->items.empty() || arguments->items[0]->kind != Kind::tensor)
          damaged("has a parameter that is not a tensor");
        return push(arguments->items[0]);
      case Global::size:
        if (arguments->items.size() != 1) damaged("has a shape that is none");
        return push(arguments->items[0]);
      case Global::storage:
      case Global::dtype:
        break;
    }
    damaged("calls something that is not a function");
  }

  void push_long(std::string_view digits) {
    int64_t value = 0;
    // Longer integers are only used as marks; their low bytes are enough.
    const size_t count = std::min<size_t>(digits.size(), 8);
    for (size_t i = count; i-- > 0;) value = int64_t(uint64_t(value) << 8 | uint8_t(digits[i]));
    if (count > 0 && count < 8 && (uint8_t(digits[count - 1]) & 0x80)) value -= int64_t(1) << (8 * count);
    push_integer(Kind::integer, value);
  }

  void step(uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const auto protocol = number<uint8_t>(); protocol > 5)
          damaged(str("is a pickle of protocol ", int(protocol)));
        return;
      case 0x95:  // FRAME
        return void(take(8));
      case '(':
        if (marks.size() >= max_objects) damaged("piles up too much");
        return marks.push_back(stack.size());
      case '0':
        return void(pop());
      case '1':
        return void(pop_to_mark());
      case '2':
        return push(top());
      case 'N':
        return push(make(Kind::none));
      case 0x88:
      case 0x89:
        return push_integer(Kind::flag, opcode == 0x88);
      case 'K':
        return push_integer(Kind::integer, number<uint8_t>());
      case 'M':
        return push_integer(Kind::integer, number<uint16_t>());
      case 'J':
        return push_integer(Kind::integer, number<int32_t>());
      case 0x8a:  // LONG1
        return push_long(take(number<uint8_t>()));
      case 'G':
        take(8);
        return push(make(Kind::real));
      case 'X':
      case 'T':  // Python 2's strings, as 'U'
        return push_text(take(number<uint32_t>()));
      case 0x8c:
      case 'U':
        return push_text(take(number<uint8_t>()));
      case 0x8d:
        return push_text(take(number<uint64_t>()));
      case ')':
      case 0x85:
      case 0x86:
      case 0x87:
        return push_tuple(opcode == ')' ? size_t{0} : size_t{opcode} - 0x84);
      case 't':
        return push_tuple(pop_to_mark());
      case ']':
        return push(make(Kind::list));
      case 'a':
        return extend(Kind::list, {pop()});
      case 'e':
        return extend(Kind::list, pop_to_mark());
      case '}':
        return push(make(Kind::map));
      case 's': {
        Object* const value = pop();
        Object* const key = pop();
        return extend(Kind::map, {key, value});
      }
      case 'u':
        return extend(Kind::map, pop_to_mark());
      case 'q':
        return remember(number<uint8_t>());
      case 'r':
        return remember(number<uint32_t>());
      case 0x94:  // MEMOIZE
        return remember(uint32_t(memo.size()));
      case 'h':
        return recall(number<uint8_t>());
      case 'j':
        return recall(number<uint32_t>());
      case 'c': {
        const std::string_view module = line();
        return push_global(str(module, ' ', line()));
      }
      case 0x93: {  // STACK_GLOBAL
        const Object* const name = pop();
        return push_global(str(pop()->text, ' ', name->text));
      }
      case 'Q':
        return push_storage(pop());
      case 'R':
      case 0x81:  // NEWOBJ, of a dictionary: its class, and nothing
        return reduce();
      case 'b':  // BUILD: attributes of a dictionary (_metadata) are dropped
        pop();
        if (top()->kind != Kind::map) damaged("sets items of something that is not a dictionary");
        return;
      default:
        refuse(file, str("its pickle has the opcode ", int(opcode), " at byte ", at - 1, ", which no tensor needs"),
               as_safetensors);
    }
  }

  const Object* run() {
    copied = 0, arena.clear(), stack.clear(), marks.clear(), memo.clear(), storages.clear(), tensors.clear();
    for (uint8_t opcode; (opcode = number<uint8_t>()) != '.';) step(opcode);
    if (stack.size() != 1 || !marks.empty()) damaged("does not end in one object");
    return stack.front();
  }
};

Unpickler::Unpickler(std::string_view bytes, std::string file) : machine_(std::make_unique<Machine>()) {
  machine_->bytes = bytes;
  machine_->file = std::move(file);
}

Unpickler::~Unpickler() = default;

std::vector<std::pair<std::string, PickledTensor>> Unpickler::state_dict() {
  Machine& machine = *machine_;
  const Object* const root = machine.run();
  if (root->kind != Kind::map) refuse(machine.file, "does not hold a dictionary of tensors", as_safetensors);
  std::vector<std::pair<std::string, PickledTensor>> out;
  for (size_t i = 0; i < root->items.size(); i += 2) {
    const Object *key = root->items[i], *value = root->items[i + 1];
    if (key->kind != Kind::text) refuse(machine.file, "holds a dictionary whose keys are not names", as_safetensors);
    if (value->kind != Kind::tensor)
      refuse(machine.file, "its entry " + in_quotes(key->text) + " is not a tensor",
             "save the model's state_dict() alone");
    out.emplace_back(key->text, machine.tensors[size_t(value->number)]);
  }
  return out;
}

std::vector<std::string> Unpickler::texts() {
  const Object* const root = machine_->run();
  std::vector<std::string> out;
  if (root->kind != Kind::list) machine_->damaged("has no list where one should be");
  for (const Object* item : root->items) {
    if (item->kind != Kind::text) machine_->damaged("lacks a list of names");
    out.emplace_back(item->text);
  }
  return out;
}

void Unpickler::skip() { machine_->run(); }

size_t Unpickler::at() const { return machine_->at; }

const std::vector<PickledStorage>& Unpickler::storages() const { return machine_->storages; }

}  // namespace easydel::weights
