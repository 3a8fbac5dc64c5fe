package procs

import (
	"os"
	"path/filepath"
)

// ModuleLoad names one loading of a kernel module: the number that the kernel
// gives to the module's directory under root, another each time. It is empty
// where there is no such module.
func ModuleLoad(root, module string) string {
	info, err := os.Stat(filepath.Join(root, "sys/module", module))
	if err != nil {
		return ""
	}
	return "/" + fileNumber(info)
}
