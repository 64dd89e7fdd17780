// The millrace command: its subcommands read like sentences, and each has its own --help.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "core/graph/node_name.h"
#include "python_free_api/flags.h"
#include "python_free_api/server_main.h"
#include "python_free_api/version.h"
#include "tools/millrace/command.h"

namespace {

using millrace::StrCat;

int ServerCommand(const std::vector<std::string>& arguments) {
  return millrace::ServerMain(arguments);
}

struct Subcommand {
  const char* name;
  const char* usage;
  const char* purpose;
  int (*run)(const std::vector<std::string>& arguments);
};

constexpr Subcommand kSubcommands[] = {
    {"server", "[--cluster C --job J --task N]", "serve one task of a cluster", ServerCommand},
    {"place", "GRAPH.pb --devices 'ps=1;worker=2'",
     "place a saved graph without running it; print where each node goes and why",
     millrace::PlaceCommand},
    {"view", "PLACED.pb -o out.html", "make a page that shows a placed graph in the browser",
     millrace::ViewCommand},
    {"inspect", "FILE",
     "say what is in a file: graph, checkpoint, safetensors, events, placement report, IDX",
     millrace::InspectCommand},
    {"run", "GRAPH.pb --feed x=a.npy --fetch y -o DIR",
     "run steps of a saved graph, here or on a cluster, from arrays to arrays",
     millrace::RunGraphCommand},
    {"ops", "", "list the operations of this build", millrace::OpsCommand},
    {"bench", "--suite first [--peers]", "measure this build, beside TensorFlow if wanted",
     millrace::BenchCommand},
};

std::string Help() {
  std::string text =
      "Millrace: dataflow graphs that train and run on clusters.\n\n"
      "Usage: millrace SUBCOMMAND [flags], millrace SUBCOMMAND --help\n\n";
  for (const Subcommand& command : kSubcommands) {
    absl::StrAppend(&text, "  millrace ", command.name, " ", command.usage, "\n      ",
                    command.purpose, "\n");
  }
  absl::StrAppend(
      &text,
      "\nA cluster on this machine, three processes:\n"
      "  C='ps=127.0.0.1:7000;worker=127.0.0.1:7001,127.0.0.1:7002'\n"
      "  millrace server --cluster \"$C\" --job ps --task 0 &\n"
      "  millrace server --cluster \"$C\" --job worker --task 0 &\n"
      "  millrace server --cluster \"$C\" --job worker --task 1 &\n"
      "Programs open sessions at any of them: grpc://127.0.0.1:7001.\n\n"
      "After a training run, in its folder:\n"
      "  millrace inspect checkpoint-1404     its tensors, checksums verified\n"
      "  millrace place graph.pb --clear_devices --devices 'ps=2;worker=4' --view placed.html\n\n"
      "  millrace --version                   version\n");
  return text;
}

int UnknownSubcommand(const std::string& name) {
  millrace::NearestName nearest(name);
  for (const Subcommand& command : kSubcommands) nearest.Consider(command.name);
  std::fprintf(stderr, "millrace: there is no subcommand '%s'%s (millrace --help lists them)\n",
               name.c_str(), nearest.Suggestion().c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments = millrace::Arguments(argc, argv);
  if (arguments.empty()) {
    std::fputs(Help().c_str(), stderr);
    return 2;
  }
  std::string name = arguments[0];
  arguments.erase(arguments.begin());
  if (name == "--version") {
    std::printf("millrace %s\n", millrace::kVersion);
    return 0;
  }
  if (name == "--help" || name == "-h" || name == "help") {
    if (arguments.empty() || name != "help") {
      std::fputs(Help().c_str(), stdout);
      return 0;
    }
    name = arguments[0];
    arguments = {"--help"};
  }
  for (const Subcommand& command : kSubcommands) {
    if (name == command.name) return command.run(arguments);
  }
  return UnknownSubcommand(name);
}
