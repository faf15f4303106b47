# The front door. Meson does the work; everything here sets itself up on a
# fresh Debian 12 (scripts/setup asks apt only when something is missing).
PREFIX ?= /usr/local
BUILD  ?= build

.PHONY: all build wheel demo demo-session test truth acceptance test-vm lint bench install clean
all: build

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet
	@ln -sf src/skillsandbox $(BUILD)/skillsandbox

$(BUILD)/build.ninja:
	@scripts/setup build
	@meson setup $(BUILD) >/dev/null || { cat $(BUILD)/meson-logs/meson-log.txt; exit 1; }

# A Python wheel with the program in it: build/skillsandbox-VERSION-....whl
wheel: build
	@scripts/setup wheel
	@scripts/wheel $(BUILD)/src/skillsandbox $(BUILD)

demo: build
	@scripts/setup demo
	@examples/demo $(BUILD)/skillsandbox

demo-session: build
	@scripts/setup demo
	@examples/demo-session $(BUILD)/skillsandbox

test:
	@scripts/setup build demo test npm
	@scripts/npm-set mcp pyodide
	@tests/run

# Random programs against the kernel's own word: see tests/truth/README.md.
truth: build
	@scripts/setup test
	@tests/truth/run --programs 20000

# The real Claude Code, Codex, OpenCode, Inspector, Chromium, without a network: more than 1 GB of
# packages, which is why make test does without.
acceptance: build
	@scripts/setup demo test acceptance npm
	@scripts/npm-set acceptance
	@tests/acceptance/run

# Takes an hour where the processor is emulated; see tests/vm/README.md.
test-vm:
	@tests/vm/run

lint: build
	@scripts/setup test
	@tests/lint/run $(BUILD)

bench: build
	@scripts/setup bench
	@tests/bench/run $(BUILD)/skillsandbox
	@tests/bench/observe $(BUILD)/skillsandbox
	@tests/bench/net $(BUILD)/skillsandbox
	@tests/bench/trace $(BUILD)
	@tests/bench/session $(BUILD)
	@tests/bench/kill $(BUILD)
	@tests/bench/serve $(BUILD)
	@tests/bench/python $(BUILD)

install: build
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@meson install -C $(BUILD)

clean:
	rm -rf $(BUILD) build-asan build-fuzz build-npm
