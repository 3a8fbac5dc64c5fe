package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"slipway/backend/session"
)

// packagesPath is where the person installs packages if the image's own places belong to root. It is in the container's
// layer, so an image of the session holds it, unlike the home.
const packagesPath = "/opt/slipway"

// packageVars lead package managers there: pip and its console scripts, R, and conda's environments.
var packageVars = [...]session.EnvVar{
	{Name: "PYTHONUSERBASE", Value: packagesPath},
	{Name: "PIP_BREAK_SYSTEM_PACKAGES", Value: "1"}, // of a distribution, which stay as they are
	{Name: "R_LIBS_USER", Value: packagesPath + "/R"},
	{Name: "CONDA_ENVS_DIRS", Value: packagesPath + "/conda"},
}

// packagesProfile is for login shells, in which /etc/profile replaces PATH.
const packagesProfile = `case ":$PATH:" in
*:` + packagesPath + `/bin:*) ;;
*) PATH=` + packagesPath + `/bin:$PATH ;;
esac
`

// keepPackages makes the place for packages the work user's. Root needs none, but uses one that the image has. own are
// the variables that the session sets.
func (c *container) keepPackages(own []session.EnvVar) error {
	err := c.preparePackages()
	switch {
	case c.uid == 0 && errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return session.WrapError(err, session.CodeNoHome,
			fmt.Sprintf("The directory for installed packages could not be prepared: %v.", err),
			"Packages that you install go to the home, and are not part of an image of the session.")
	}
	vars := packageVars[:]
	if c.env.get("CONDA_ENVS_PATH") != "" { // the older name, next to which conda refuses the newer
		vars = vars[:len(vars)-1]
	}
	c.env = c.env.withDefaults(vars)
	if !slices.ContainsFunc(own, func(v session.EnvVar) bool { return v.Name == "PATH" }) {
		c.env = c.env.set("PATH", packagesPath+"/bin:"+c.env.get("PATH"))
	}
	if dir, err := c.held.tree.image("/etc/profile.d", false); err == nil {
		_ = dir.replace("slipway.sh", []byte(packagesProfile), 0o644) // what it is for still works in other shells
		dir.close()
	}
	return nil
}

// preparePackages makes the directories. R uses its own only if it exists.
func (c *container) preparePackages() error {
	top, err := c.held.tree.image(packagesPath, c.uid != 0)
	if err != nil {
		return err
	}
	defer top.close()
	r, err := c.held.tree.image(packagesPath+"/R", true)
	if err != nil {
		return err
	}
	defer r.close()
	if int(top.stat.Uid) == c.uid && int(r.stat.Uid) == c.uid {
		return nil
	}
	return top.giveDirectories(c.uid, c.gid)
}
