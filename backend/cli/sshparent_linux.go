package cli

import (
	"bytes"
	"os"
	"strconv"
)

// parentCommand returns the words of the command that started this program.
func parentCommand() []string {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/cmdline")
	if err != nil {
		return nil
	}
	var words []string
	for word := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte{0}), []byte{0}) {
		words = append(words, string(word))
	}
	return words
}
