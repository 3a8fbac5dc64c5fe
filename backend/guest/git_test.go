//go:build linux

package guest_test

import (
	"testing"

	"slipway/backend/session"
)

// TestCommitsHaveTheAuthorOfTheLaunch runs the git of this computer in containers of several images.
func TestCommitsHaveTheAuthorOfTheLaunch(t *testing.T) {
	ada := session.GitAuthor{Name: `Ada "L" \ K`, Email: "ada@example.com"}
	const ident = "git var GIT_AUTHOR_IDENT | sed 's/>.*/>/'"
	for name, c := range map[string]struct {
		files  map[string]string // of the image
		script string
		want   string
	}{
		"nothing else":          {nil, ident, "Ada \"L\" \\ K <ada@example.com>\n"},
		"the repository":        {nil, "git config user.name Bob && " + ident, "Bob <ada@example.com>\n"},
		"the person's own file": {nil, "git config --global user.name Bob && " + ident, "Bob <ada@example.com>\n"},
		"the image": {map[string]string{"etc/gitconfig": "[user]\nemail = image@example.com\n"}, ident,
			"Ada \"L\" \\ K <image@example.com>\n"},
		"start files of the image": {map[string]string{"etc/skel/.gitconfig": "[user]\nname = S\nemail = s@s\n"},
			ident, "S <s@s>\n"},
		"a variable": {nil, "export GIT_AUTHOR_NAME=Var; " + ident, "Var <ada@example.com>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, true)
			b.settings.Author = ada
			for name, content := range c.files {
				b.write(name, content)
			}
			got := run(t, b.start().connect(), "sh", "-c", "git init -q paper && cd paper && "+c.script)
			if got.out != c.want {
				t.Errorf("a commit would be by %+v, want %q", got, c.want)
			}
		})
	}
}
