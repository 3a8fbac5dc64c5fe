package enginetest

import (
	"os"
	"testing"
)

// The images that tests on a real Docker may count on. The scripts that start
// the test daemon make them.
const (
	// ImageMinimal has bash, the core utilities and python3.
	ImageMinimal = "slipway-test/minimal:1"
	// ImageNotebook has jupyter-notebook besides.
	ImageNotebook = "slipway-test/notebook:1"
	// ImageStatic holds one static binary, /hello, and nothing else.
	ImageStatic = "slipway-test/static:1"
	// ImageUser is the minimal image with a default user that is not root.
	ImageUser = "slipway-test/user:1"
)

// DockerVariable names the environment variable that holds the address of the
// Docker daemon for tests, as unix:///path.
const DockerVariable = "SLIPWAY_TEST_DOCKER"

// RequireDocker returns the address of the Docker daemon that tests may use.
// Without one it skips the test under -short and fails it otherwise: a test
// that did not run has not passed.
func RequireDocker(t testing.TB) string {
	t.Helper()
	host := os.Getenv(DockerVariable)
	switch {
	case testing.Short():
		t.Skip("needs a Docker daemon; left out under -short")
	case host == "":
		t.Fatalf("%s is not set: this test needs a Docker daemon with the test images; run make test, or use -short "+
			"to leave it out", DockerVariable)
	}
	return host
}

// ModernVariable names the environment variable that holds the address of a
// Docker daemon of today whose CDI specification names made-up devices.
const ModernVariable = "SLIPWAY_TEST_MODERN_DOCKER"

// leftToVerify is the value of [ModernVariable] by which make test leaves that
// daemon, which is built from source, to make verify.
const leftToVerify = "verify"

// RequireModernDocker is [RequireDocker] for that daemon.
func RequireModernDocker(t testing.TB) string {
	t.Helper()
	host := os.Getenv(ModernVariable)
	switch {
	case testing.Short():
		t.Skip("needs a Docker daemon of today; left out under -short")
	case host == leftToVerify:
		t.Skip("needs a Docker daemon of today; make verify runs it")
	case host == "":
		t.Fatalf("%s is not set: this test needs the daemon of build/ci/moderndocker.sh; run make test, or use "+
			"-short to leave it out", ModernVariable)
	}
	return host
}
