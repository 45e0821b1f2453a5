// Keys on a clock of the test's.
#include "easydel/server/key_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/server/server.h"
#include "server/client.h"
#include "support/data.h"

namespace easydel::server {
namespace {

namespace fs = std::filesystem;

const Route chat{"POST", "/v1/chat/completions", Scope::generate, true, ""};
const Route metrics{"GET", "/metrics", Scope::metrics, false, ""};

struct Store {
  explicit Store(std::filesystem::path file = {}, std::optional<std::string> admin = {})
      : keys({.file = std::move(file), .admin_key = std::move(admin), .seconds_since_1970 = [this] { return now; }}) {}
  // The status that a client gets, and what it is told.
  std::string ask(const std::string& secret, const Route& route = chat, const std::string& address = "10.0.0.1") {
    const Admission admission = keys.admit(&secret, address, route);
    if (!admission.error) return "200";
    std::string out = str(admission.error->status, " ", admission.error->message);
    if (admission.error->retry_after_seconds) out += str(" ", *admission.error->retry_after_seconds);
    return out;
  }
  int64_t now = 1'000'000;
  KeyStore keys;
};

TEST(KeyStore, MakesKeysAndStoresOnlyTheirHash) {
  test::TemporaryFolder folder;
  Store store(folder / "keys.json");
  const KeyStore::Created created = store.keys.create({.name = "a"}, "admin");
  EXPECT_EQ(created.secret.size(), 67u);
  EXPECT_TRUE(created.secret.starts_with("sk-"));
  EXPECT_EQ(created.key.key_prefix, created.secret.substr(0, 12));
  EXPECT_EQ(created.key.hashed_key, files::sha256(created.secret));
  EXPECT_EQ(shown(created.key).find("hashed_key"), nullptr);
  store.keys.save();
  EXPECT_EQ(test::read_file(folder / "keys.json").find(created.secret.substr(12)), std::string::npos);
  EXPECT_EQ(store.ask(created.secret), "200");
  EXPECT_EQ(store.ask(created.secret + " "), "401 Missing or invalid API key");
  EXPECT_EQ(store.ask(created.secret.substr(0, 66)), "401 Missing or invalid API key");
  EXPECT_EQ(store.keys.admit(nullptr, "", chat).error->status, 401);
  // A new start has the same keys.
  store.keys.save();
  Store again(folder / "keys.json");
  EXPECT_EQ(again.ask(created.secret), "200");
  EXPECT_EQ(again.keys.get(created.key.key_id).usage.total_requests, 2);
}

TEST(KeyStore, FollowsTheLifeOfAKey) {
  Store store;
  KeyStore::Created created = store.keys.create({.name = "a", .expires_at = 1'000'100}, "admin");
  const std::string id = created.key.key_id;
  store.keys.set_suspended(id, true, "admin");
  EXPECT_EQ(store.ask(created.secret), "403 The API key is suspended.");
  EXPECT_FALSE(store.keys.add_tokens(id, 1));
  store.keys.set_suspended(id, false, "admin");
  EXPECT_EQ(store.ask(created.secret), "200");
  const KeyStore::Created rotated = store.keys.rotate(id, "admin");
  EXPECT_EQ(store.ask(created.secret), "401 Missing or invalid API key");
  EXPECT_EQ(store.ask(rotated.secret), "200");
  store.now = 1'000'099;
  EXPECT_EQ(store.ask(rotated.secret), "200");
  store.now = 1'000'100;
  EXPECT_EQ(store.ask(rotated.secret), "401 The API key has expired.");
  store.keys.change(id, parse_json(R"({"expires_at": null, "permissions": {"enable_streaming": false}})"), "admin");
  EXPECT_EQ(store.ask(rotated.secret), "200");
  EXPECT_FALSE(store.keys.get(id).settings.permissions.enable_streaming);
  EXPECT_EQ(store.keys.get(id).settings.name, "a");
  EXPECT_THROW(store.keys.change(id, parse_json(R"({"nam": 1})"), "admin"), UserError);
  store.keys.revoke(id, "admin");
  EXPECT_EQ(store.ask(rotated.secret), "401 Missing or invalid API key");
  EXPECT_EQ(test::refusal([&] { store.keys.rotate(id, "admin"); }), "key_id: the key is revoked\n    create a new one");
  EXPECT_EQ(test::refusal([&] { store.keys.set_suspended(id, false, "admin"); }),
            "key_id: the key is revoked\n    create a new one");
  store.keys.remove(id, "admin");
  EXPECT_EQ(test::refusal([&] { store.keys.get(id); }), "key_id: there is no key '" + id + "'");
  std::string actions;
  for (const AuditEntry& entry : store.keys.audit(100)) actions += entry.action + " ";
  EXPECT_EQ(actions, "delete revoke update rotate reactivate refused suspend create ");
}

TEST(KeyStore, LimitsWhoMayAskForWhat) {
  Store store;
  KeySettings settings{.name = "a"};
  settings.permissions.allowed_ip_addresses = {"10.0.0.1", "10.0.0.2"};
  settings.permissions.blocked_ip_addresses = {"10.0.0.2"};
  settings.permissions.allowed_endpoints = {"/v1/chat/completions"};
  const std::string secret = store.keys.create(settings, "admin").secret;
  EXPECT_EQ(store.ask(secret), "200");
  EXPECT_EQ(store.ask(secret, chat, "10.0.0.2"), "403 The API key is not valid for this address.");
  EXPECT_EQ(store.ask(secret, chat, "10.0.0.3"), "403 The API key is not valid for this address.");
  const Route other{"POST", "/v1/completions", Scope::generate, true, ""};
  EXPECT_EQ(store.ask(secret, other), "403 The API key does not allow /v1/completions.");
  EXPECT_EQ(store.ask(secret, metrics), "403 The API key's role 'user' does not allow 'metrics'.");
  EXPECT_EQ(test::refusal([&] {
              KeySettings wrong;
              config::read(parse_json(R"({"name": "", "permissions": {"allowed_endpoints": ["/x"]}})"), wrong, "")
                  .throw_if_any();
            }).substr(0, 39),
            ":1:10: name: is empty\n    give the key ");
}

TEST(KeyStore, CountsRequestsInWindows) {
  Store store;
  KeySettings settings{.name = "a"};
  settings.rate_limits = {.requests_per_minute = 2, .requests_per_hour = 3};
  const std::string secret = store.keys.create(settings, "admin").secret;
  EXPECT_EQ(store.ask(secret), "200");
  store.now += 59;
  const Admission second = store.keys.admit(&secret, "", chat);
  EXPECT_FALSE(second.error);
  EXPECT_EQ(second.rates.remaining_requests, 0);
  EXPECT_EQ(second.rates.limit_requests, 2);
  EXPECT_EQ(second.rates.reset_requests_seconds, 1);
  EXPECT_EQ(store.ask(secret), "429 The key's limit of 2 requests in a minute is reached. 1");
  store.now += 1;
  EXPECT_EQ(store.ask(secret), "200");
  EXPECT_EQ(store.ask(secret), "429 The key's limit of 3 requests in a hour is reached. 3540");
  store.now += 3540;
  EXPECT_EQ(store.ask(secret), "200");
}

TEST(KeyStore, NeverPassesAQuotaOfTokens) {
  Store store;
  KeySettings settings{.name = "a"};
  settings.quota.max_total_tokens = 1000;
  settings.rate_limits.tokens_per_minute = 900;
  const KeyStore::Created created = store.keys.create(settings, "admin");
  std::atomic<int64_t> granted = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 50; ++i)
    clients.emplace_back([&] {
      for (int k = 0; k < 100; ++k)
        if (store.keys.add_tokens(created.key.key_id, 1)) ++granted;
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(granted, 900);
  EXPECT_EQ(store.ask(created.secret), "429 The key's limit of 900 tokens in a minute is reached. 60");
  store.now += 60;
  EXPECT_FALSE(store.keys.add_tokens(created.key.key_id, 101));
  EXPECT_TRUE(store.keys.add_tokens(created.key.key_id, 100));
  EXPECT_EQ(store.ask(created.secret), "429 The key's quota of tokens is used up.");
  EXPECT_EQ(store.keys.get(created.key.key_id).usage.total_tokens, 1000);
}

TEST(KeyStore, SlowsGuessingWithoutHoldingUpRightKeys) {
  Store store({}, "the admin's own key");
  const std::string secret = store.keys.create({.name = "a"}, "admin").secret;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(store.ask(str("guess ", i)), "401 Missing or invalid API key");
  store.now += 20;
  EXPECT_EQ(store.ask("guess"), "429 Too many wrong API keys from this address. 40");
  EXPECT_EQ(store.ask(secret), "200");
  EXPECT_EQ(store.ask("the admin's own key"), "200");
  EXPECT_EQ(store.ask("guess", chat, "10.0.0.2"), "401 Missing or invalid API key");
  store.now += 40;
  EXPECT_EQ(store.ask("guess"), "401 Missing or invalid API key");
}

TEST(KeyStore, RefusesABrokenFile) {
  test::TemporaryFolder folder;
  const auto refusal = [&](std::string_view text) {
    test::write_file(folder / "keys.json", text);
    fs::permissions(folder / "keys.json", fs::perms::owner_read | fs::perms::owner_write);
    return test::replaced(test::refusal([&] { Store store(folder / "keys.json"); }), folder.path().string() + "/", "");
  };
  EXPECT_EQ(refusal("{}"), "keys.json: is not a file of keys\n    it has an object with a list 'keys'");
  EXPECT_EQ(refusal("{"), "keys.json:1:2: is not JSON: it ends too early\n    is the file complete?");
  EXPECT_NE(refusal(R"({"keys": [{"key_id": "a", "hashed_key": "x"}]})").find("is not a SHA-256 of 64 hex digits"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"keys": [{"key_id": "a"}, {"key_id": "a"}]})").find("is there twice"), std::string::npos);
  EXPECT_NE(refusal(R"({"keys": [{}]})").find("key_id"), std::string::npos);
  // What was read before stays when a file that is read anew is broken.
  Store store(folder / "keys2.json");
  const std::string secret = store.keys.create({.name = "a"}, "admin").secret;
  store.keys.save();
  store.keys.reload();
  EXPECT_EQ(store.ask(secret), "200");
  test::write_file(folder / "keys2.json", "{}");
  EXPECT_THROW(store.keys.reload(), UserError);
  EXPECT_EQ(store.ask(secret), "200");
}

TEST(KeyStore, ItsFileIsForItsUserAlone) {
  test::TemporaryFolder folder;
  const fs::path file = folder / "keys.json";
  test::write_file(folder / "before", "");
  Store store(file);
  store.keys.create({.name = "a"}, "admin");
  store.keys.save();
  EXPECT_TRUE(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  test::write_file(folder / "after", "");  // of other files nothing has changed
  EXPECT_TRUE(fs::status(folder / "before").permissions() == fs::status(folder / "after").permissions());
  for (const fs::perms more : {fs::perms::group_read, fs::perms::others_read}) {
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write | more);
    EXPECT_EQ(test::refusal([&] { Store again(file); }),
              file.string() + ": can be read by other users\n    run: chmod 600 " + file.string());
  }
}

TEST(KeyStore, SavesAgainAfterAWriteFailed) {
  test::TemporaryFolder folder;
  Store store(folder / "keys.json");
  store.keys.create({.name = "a"}, "admin");
  files::set_fault([](files::Operation operation, const files::fs::path&) {
    return operation == files::Operation::fsync ? ENOSPC : 0;
  });
  EXPECT_THROW(store.keys.save(), UserError);
  files::set_fault(nullptr);
  EXPECT_FALSE(files::exists(folder / "keys.json"));
  store.keys.save();
  EXPECT_TRUE(files::exists(folder / "keys.json"));
}

ServeConfig with_keys_in(const fs::path& folder) {
  ServeConfig config;
  config.host = "127.0.0.1";
  config.port = 0;
  config.storage_dir = folder.string();
  return config;
}

TEST(ServerStart, WarnsOfKeysThatNobodyHas) {
  std::mutex mutex;
  std::string logged;
  log::set_sink([&](log::Level, std::string_view line) {
    const std::lock_guard lock(mutex);
    logged += str(line, "\n");
  });
  const auto is_warned = [&](const ServeConfig& config) {
    {
      const std::lock_guard lock(mutex);
      logged.clear();
    }
    Server server(config);
    server.start();
    EXPECT_TRUE(server.drain(5));
    const std::lock_guard lock(mutex);
    return logged.find("requests need API keys, and there are none: every request is refused") != std::string::npos;
  };
  const test::TemporaryFolder folder;
  ServeConfig config = with_keys_in(folder / "kept");
  EXPECT_TRUE(is_warned(config));
  config.storage_dir = {};
  config.require_api_key = true;
  EXPECT_TRUE(is_warned(config));
  config.admin_key = "the admin's own key";
  EXPECT_FALSE(is_warned(config));
  // With a key that was made before, the server needs no administrator.
  config = with_keys_in(folder / "kept");
  files::make_directories(folder / "kept");
  Store store(folder / "kept" / "keys.json");
  store.keys.create({.name = "a"}, "admin");
  store.keys.save();
  EXPECT_FALSE(is_warned(config));
  log::set_sink(nullptr);
}

TEST(ServerStart, RefusesAFolderThatCannotBeWritten) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", "");
  ServeConfig config = with_keys_in(folder / "file");
  config.admin_key = "the admin's own key";
  EXPECT_EQ(
      test::refusal([&] {
        Server server(config);
        server.start();
      }),
      "storage_dir: " + (folder / "file").string() +
          ": cannot create this folder: a file with this name exists\n    give a path that can be written, or set " +
          "enable_persistence: false, with which keys are only read");
  config.api_keys_file = (folder / "none" / "keys.json").string();
  config.storage_dir = {};
  EXPECT_EQ(test::refusal([&] {
              Server server(config);
              server.start();
            }),
            "api_keys_file: " + *config.api_keys_file + ": cannot write: No such file or directory\n    give a path " +
                "that can be written, or set enable_persistence: false, with which keys are only read");
  config.enable_persistence = false;
  Server server(config);
  server.start();
  EXPECT_TRUE(server.drain(5));
}

TEST(ServerStart, SaysOnceThatKeysAreNotSavedAndOnceThatTheyAreAgain) {
  std::mutex mutex;
  std::string logged;
  log::set_sink([&](log::Level, std::string_view line) {
    const std::lock_guard lock(mutex);
    logged += str(line, "\n");
  });
  const auto count = [&](const std::string& text) {
    const std::lock_guard lock(mutex);
    int out = 0;
    for (size_t at = logged.find(text); at != std::string::npos; at = logged.find(text, at + 1)) ++out;
    return out;
  };
  const test::TemporaryFolder folder;
  ServeConfig config = with_keys_in(folder / "kept");
  config.admin_key = "the admin's own key";
  config.auto_save_interval = 0.01;
  {
    Server server(config);
    server.start();
    files::remove_all(folder / "kept");
    const std::string address = server.address();
    test::RawClient client(std::stoll(address.substr(address.rfind(':') + 1)));
    client.send(
        "POST /v1/admin/keys HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 13\r\nContent-Type: "
        "application/json\r\nAuthorization: Bearer the admin's own key\r\n\r\n{\"name\": \"a\"}");
    EXPECT_EQ(client.all().substr(9, 3), "200");
    EXPECT_TRUE(test::eventually([&] { return count("the keys were not saved") == 1; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it is tried again meanwhile
    EXPECT_EQ(count("the keys were not saved"), 1);
    files::make_directories(folder / "kept");
    EXPECT_TRUE(test::eventually([&] { return count("the keys are saved again") == 1; }));
    server.drain(5);
  }
  EXPECT_EQ(count("the keys were not saved"), 1);
  EXPECT_EQ(count("the keys are saved again"), 1);
  log::set_sink(nullptr);
}

}  // namespace
}  // namespace easydel::server
