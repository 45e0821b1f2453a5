// What `easydel serve` refuses at its start, before a model is loaded: the whole text of each error.
#include <gtest/gtest.h>

#include "cli/serve_process.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::ServeProcess;
using test::story_model;

TEST(ServeStart, RefusesWhatItCannotDoBeforeAModelIsLoaded) {
  const ServeProcess other({"serve", story_model(), "--port", "0"});
  const std::string port = std::to_string(other.port());
  const test::TemporaryFolder folder;
  const auto at = [&](const char* name) { return (folder / name).string(); };
  const auto refused = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"serve", story_model()});
    const test::Ran ran = test::run_program(more);
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_EQ(ran.out, "") << "it listened";
    EXPECT_EQ(ran.err.find("esurge:"), std::string::npos) << "the model was loaded";
    return test::replaced(ran.err, folder.path().string() + "/", "");
  };
  const std::string one = "1 problem in easydel serve; nothing was run.\n";
  EXPECT_EQ(refused({"--port", port}),
            "port: " + port + " is in use on 127.0.0.1\n    stop the other program, or give another port\n");
  EXPECT_EQ(refused({"--port", "70000"}),
            "--port 70000: actions[0].serve.port: 70000 is out of range\n    expected an integer from 0 to 65535 "
            "(default 11556)\n" +
                one);
  const std::string no_host = refused({"--host", "no.such.host.invalid"}), host = "host: 'no.such.host.invalid' ";
  EXPECT_TRUE(no_host.starts_with(host + "is not an address of this machine: ")) << no_host;  // the system says why
  EXPECT_TRUE(no_host.ends_with("\n    127.0.0.1 accepts connections of this machine only, 0.0.0.0 of all\n"))
      << no_host;
  EXPECT_EQ(refused({"--tool-parser-name", "hermess"}),
            "--tool-parser-name hermess: actions[0].serve.tool_parser_name: 'hermess' is not a format of tool calls\n"
            "    did you mean 'hermes'?\n" +
                one);
  EXPECT_EQ(refused({"--set", "esurge.tool_parser=mistrall"}),
            "--set esurge.tool_parser=mistrall: esurge.tool_parser: 'mistrall' is not a format of tool calls\n"
            "    did you mean 'mistral'?\n" +
                one);
  EXPECT_EQ(refused({"--set", "esurge.reasoning_parser=deepseek_r2"}),
            "--set esurge.reasoning_parser=deepseek_r2: esurge.reasoning_parser: 'deepseek_r2' is not a format of "
            "reasoning\n    did you mean 'deepseek_r1'?\n" +
                one);
  EXPECT_EQ(refused({"--tool-parser-name", "hermes", "--set", "esurge.tool_parser=mistral"}),
            "--tool-parser-name hermes: actions[0].serve.tool_parser_name: is 'hermes', but esurge.tool_parser is "
            "'mistral'\n    give one of them\n" +
                one);
  EXPECT_EQ(refused({"--admin-key", "short"}),
            "--admin-key short: actions[0].serve.admin_key: has fewer than 16 characters\n    make one that cannot be "
            "guessed, such as: openssl rand -hex 24\n" +
                one);
  EXPECT_EQ(refused({"--ssl-certfile", "a"}),
            "--ssl-certfile a: actions[0].serve.ssl_certfile: is given without ssl_keyfile\n    HTTPS needs a "
            "certificate and its key\n" +
                one);
  EXPECT_EQ(refused({"--ssl-certfile", at("none"), "--ssl-keyfile", at("none")}),
            "ssl_certfile: none is not a file\n    give a PEM file\n");
  EXPECT_EQ(refused({"--cors-origins", "[a]"}),
            "--cors-origins [a]: actions[0].serve.cors_origins: is given without enable_cors\n    set enable_cors: "
            "true, or leave the origins out\n" +
                one);
  EXPECT_EQ(refused({"--reload", "true"}),
            "--reload true: actions[0].serve.reload: is not possible: the server and the engine are one process\n"
            "    restart the server instead\n" +
                one);
  EXPECT_EQ(refused({"--workers", "2"}),
            "--workers 2: actions[0].serve.workers: 2 is out of range\n    expected an integer from 1 to 1 (default "
            "1)\n" +
                one);
  EXPECT_EQ(refused({"--max-header-bytes", "1024", "--max-target-bytes", "2000"}),
            "--max-target-bytes 2000: actions[0].serve.max_target_bytes: is not less than max_header_bytes\n    the "
            "target is part of the first line, which counts as headers\n" +
                one);
  EXPECT_EQ(refused({"--extra-stops", "['']"}),
            "--extra-stops ['']: actions[0].serve.extra_stops: has an empty string, which would end every answer\n"
            "    take it out\n" +
                one);
  EXPECT_EQ(refused({"--max-conections", "4"}),
            "easydel serve --max-conections: no such option\n    did you mean '--max-connections'?\n");
}

TEST(ServeStart, RefusesFilesThatItCannotUseBeforeAModelIsLoaded) {
  const test::TemporaryFolder folder;
  const auto refused = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"serve", story_model(), "--port", "0"});
    const test::Ran ran = test::run_program(more);
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_EQ(ran.out, "") << "it listened";
    return test::replaced(ran.err, folder.path().string() + "/", "");
  };
  const std::string one = "1 problem in easydel serve; nothing was run.\n";
  test::write_file(folder / "keys", "{");
  test::fs::permissions(folder / "keys", test::fs::perms::owner_read | test::fs::perms::owner_write);
  EXPECT_EQ(refused({"--api-keys-file", (folder / "keys").string()}),
            "keys:1:2: is not JSON: it ends too early\n    is the file complete?\n");
  test::write_file(folder / "keys", "{\"keys\": []}");
  test::fs::permissions(folder / "keys", test::fs::perms::group_read, test::fs::perm_options::add);
  EXPECT_EQ(refused({"--api-keys-file", (folder / "keys").string()}),
            "keys: can be read by other users\n    run: chmod 600 keys\n");
  EXPECT_EQ(refused({"--adapters-dir", (folder / "none").string()}),
            test::replaced("--adapters-dir " + (folder / "none").string(), folder.path().string() + "/", "") +
                ": actions[0].serve.adapters_dir: 'none' is not a folder\n    make it, or leave the key out\n" + one);
  const std::string away = refused({"--set", "adapters.a=" + (folder / "none").string()});
  EXPECT_EQ(away,
            "--set adapters.a=none: adapters.a: 'none': no such folder\n    give a folder with config.json and "
            "*.safetensors, or a name on the Hugging Face Hub\n" +
                one);
  const std::string other = test::test_data("adapters/dora_lm_head").string();
  EXPECT_EQ(test::replaced(refused({"--set", "adapters.a=" + other}), other, "OTHER"),
            "--set adapters.a=OTHER: adapters.a: model.layers.0.self_attn.v_proj.weight of the model is [32, 64], "
            "and the adapter is for [16, 32]\n    the adapter was made for another model\n" +
                one);
  test::write_file(folder / "run.yaml",
                   "model: {name_or_path: " + story_model() + "}\nactions:\n  - serve: {port: 0, max_conections: 5}\n");
  const test::Ran ran = test::run_program({"elarge", "run.yaml"}, {.folder = folder.path()});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err,
            "run.yaml:3:22: actions[0].serve.max_conections: no such key\n    did you mean "
            "'max_connections'?\n1 problem in run.yaml; nothing was run.\n");
}

TEST(ServeStart, TakesKeysFromTheEnvironment) {
  const auto refused = [](const char* name, const char* value) {
    const test::Ran ran = test::run_program({"serve", story_model()}, {.environment = {{name, value}}});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "") << "it listened";
    return ran.err;
  };
  EXPECT_EQ(refused("EASYDEL_SERVE_PORT", "99999"),
            "EASYDEL_SERVE_PORT 99999: actions[0].serve.port: 99999 is out of range\n    expected an integer from 0 to "
            "65535 (default 11556)\n1 problem in easydel serve; nothing was run.\n");
  EXPECT_EQ(refused("EASYDEL_SERVE_ADMIN_KYE", "of-an-administrator"),
            "environment: 'EASYDEL_SERVE_ADMIN_KYE' is not a key of the server\n    did you mean "
            "'EASYDEL_SERVE_ADMIN_KEY'?\n");
}

}  // namespace
}  // namespace easydel
