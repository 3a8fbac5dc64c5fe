package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/files"
	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// Names of which every byte is escaped make the longest answers.
func TestTheLongestListingFitsIntoAMessage(t *testing.T) {
	for name, more := range map[string]int{"as many as there may be": 11, "as long as there may be": 240} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i := range session.MaxListed {
				file := filepath.Join(dir, fmt.Sprintf("%08d", i)+strings.Repeat("\x01", more))
				if err := os.Symlink("/", file); err != nil { // a link says so besides
					t.Fatal(err)
				}
			}
			req := session.ListRequest{Path: session.FilePath(dir)}
			listing, err := files.Tree{FS: files.Of(realFS{})}.ListFiles(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(listing)
			if err != nil {
				t.Fatal(err)
			}
			if len(listing.Entries) == 0 || len(data) > link.MaxMessage {
				t.Errorf("%d entries are %d bytes, want at most %d", len(listing.Entries), len(data), link.MaxMessage)
			}
			t.Logf("%d entries are %d bytes", len(listing.Entries), len(data))
		})
	}
}
