//go:build desktop

package app

import (
	"cmp"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/wailsapp/wails/v2/pkg/options/linux"

	"slipway/backend/api"
	"slipway/backend/api/route"
)

// runWindowed opens the main window if the program is started without a command, or with a link or a recipe, and an app
// window for the command "window". It does not handle other commands.
func runWindowed(args []string) (code int, handled bool) {
	switch {
	case len(args) > 0 && args[0] == "window":
		return report(runChild(args[1:])), true
	case len(args) == 1 && strings.HasPrefix(args[0], "slipway:"):
		return report(runMain(nil, args[0])), true
	case len(args) == 1 && isRecipe(args[0]):
		link, err := recipeLink(args[0])
		if err == nil {
			err = runMain(nil, link)
		}
		return report(err), true
	case len(args) == 0 || strings.HasPrefix(args[0], "--engine"):
		return report(runMain(args, "")), true
	}
	return 0, false
}

func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "slipway:", err)
	return 1
}

// runMain opens the main window, or brings an open one to the front. It shows the page for link unless that is empty.
func runMain(args []string, link string) error {
	flags := flag.NewFlagSet("slipway-desktop", flag.ContinueOnError)
	engine := flags.String("engine", "docker", "docker, slurm, sim or auto: used if the control plane has to start")
	if err := flags.Parse(args); err != nil {
		return err
	}
	prepareEnvironment()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	plane, err := connect(ctx, *engine)
	if err != nil {
		return err
	}
	page := ""
	if link != "" {
		page = "/link?" + url.Values{"url": {link}}.Encode()
	}
	shown, err := route.WindowShow.Body(api.WindowRequest{Path: page}).Ask(ctx, plane)
	if err != nil || shown.Shown {
		return err
	}
	shell := &shell{plane: plane, log: slog.Default(), first: page}
	return shell.run(ctx)
}

// prepareEnvironment sets variables that WebKitGTK reads at its start. With the locale C.UTF-8 the language of the page
// would be "C", which number formatters refuse. With the NVIDIA driver the window may stay empty unless the DMA-BUF
// renderer is off.
func prepareEnvironment() {
	locale := cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"))
	if base, _, _ := strings.Cut(locale, "."); base == "" || base == "C" || base == "POSIX" {
		_ = os.Setenv("LC_ALL", "en_US.UTF-8") // fails only for malformed names, here and below
	}
	if _, err := os.Stat("/proc/driver/nvidia/version"); err == nil &&
		os.Getenv("WEBKIT_DISABLE_DMABUF_RENDERER") == "" {
		_ = os.Setenv("WEBKIT_DISABLE_DMABUF_RENDERER", "1")
	}
}

//go:embed icon.png
var icon []byte

// linuxOptions turns on hardware acceleration only with a GPU, because software rendering scrolls better without it.
func linuxOptions() *linux.Options {
	policy := linux.WebviewGpuPolicyOnDemand // "always" in Wails 2.15, see its issue 2977
	if nodes, err := filepath.Glob("/dev/dri/renderD*"); err != nil || len(nodes) == 0 {
		policy = linux.WebviewGpuPolicyNever
	}
	return &linux.Options{Icon: icon, WebviewGpuPolicy: policy, ProgramName: "slipway"}
}
