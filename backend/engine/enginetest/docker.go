package enginetest

import (
	"os"
	"testing"
)

// Images on the test daemon, made by the scripts that start it.
const (
	ImageMinimal   = "slipway-test/minimal:1"   // bash, the core utilities and python3
	ImageNotebook  = "slipway-test/notebook:1"  // also jupyter-notebook
	ImagePip       = "slipway-test/pip:1"       // bash, the core utilities and python3 with pip
	ImageStatic    = "slipway-test/static:1"    // one static binary, /hello
	ImageFakeModel = "slipway-test/fakemodel:1" // one static binary, /fakemodel, which serves numbered words
	ImageUser      = "slipway-test/user:1"      // the minimal image with a default user that is not root
)

// DockerVariable is the environment variable with the address of the Docker daemon for tests, as unix:///path.
const DockerVariable = "SLIPWAY_TEST_DOCKER"

// ModernVariable is the same for a recent daemon whose CDI specification names made-up devices. That daemon is built
// from source: make test sets the value "verify" and leaves it to make verify.
const ModernVariable = "SLIPWAY_TEST_MODERN_DOCKER"

// ModelVariable is the environment variable with the image of a model server, llama.cpp's own with a tiny model. It is
// built from source as well, by make verify.
const ModelVariable = "SLIPWAY_TEST_MODEL"

// PodmanVariable is the address of Podman. Where it is set to one, DockerVariable has it, too: the tests run there.
const PodmanVariable = "SLIPWAY_TEST_PODMAN"

// RequireDocker returns the address of the test daemon. Without one it skips the test under -short and fails it
// otherwise: a test that did not run has not passed.
func RequireDocker(t testing.TB) string {
	t.Helper()
	return require(t, DockerVariable)
}

// RequireModernDocker is [RequireDocker] for the recent daemon.
func RequireModernDocker(t testing.TB) string {
	t.Helper()
	return require(t, ModernVariable)
}

// RequirePodman is [RequireDocker] for Podman.
func RequirePodman(t testing.TB) string {
	t.Helper()
	return require(t, PodmanVariable)
}

// RequireModel returns the image of the model server: /app/llama-server and /models/tiny.gguf, without a shell. The
// test daemon has it.
func RequireModel(t testing.TB) string {
	t.Helper()
	RequireDocker(t)
	return require(t, ModelVariable)
}

func require(t testing.TB, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	switch {
	case testing.Short():
		t.Skip("needs a Docker daemon; left out under -short")
	case value == "verify":
		t.Skip("needs what only make verify builds: " + variable)
	case value == "":
		t.Fatalf("%s is not set: this test needs a Docker daemon with the test images of build/ci; run make test, "+
			"or use -short to leave it out", variable)
	}
	return value
}
