package session

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"slipway/gpu"
)

// Projects makes images of projects: directories of folders with a file that says what their code needs. It also makes
// such folders.
type Projects interface {
	// ReadProject says what image a project asks for, and which file decides that. It builds nothing. Fails with
	// file_use_not-found if there is no such directory or file, and with file_use_invalid if a file cannot be
	// understood.
	//
	//rpc:method name=project.read effect=read limit=long args=folder,project who=owner
	ReadProject(ctx context.Context, folder FolderID, req ProjectRequest) (Project, error)
	// BuildProject starts to build the image of a project, for the owner of its folder, or joins the build of the same
	// image. An image that is there is not built again: the work is done. Fails as ReadProject does, and with
	// engine_create_unsupported where the machine cannot build. A failed step of the build is image_build_failed. Only
	// an admin may build: the steps run as root, and see all images of the machine.
	//
	//rpc:method name=project.build effect=again limit=long args=folder,project who=owner-admin
	BuildProject(ctx context.Context, folder FolderID, req ProjectBuild) (ImageWork, error)
	// LendConnection waits until a step of the build with this token connects to its proxy, and returns the connection.
	// The caller is the proxy. Fails with operation_read_not-found if there is no such build, or when it ends.
	//
	//rpc:method name=project.lend effect=once class=bulk limit=slow who=owner-admin
	LendConnection(ctx context.Context, folder FolderID, token ProxyToken) (net.Conn, error)
	// CloneFolder has the machine's own git clone a repository into a new folder. Each line of the stream is a
	// [CloneNews] in JSON, or from the caller a [CloneAnswer], of [MaxCloneLine] bytes at most. There is a folder if
	// the news is Done, and nothing is left if the stream ends earlier. Git has none of the agent's configuration,
	// keys and stored logins. Fails with file_use_invalid for another address than one of HTTP,
	// folder_create_already-exists, and engine_create_unsupported where there is no git.
	//
	//rpc:method name=project.clone effect=once who=custom
	CloneFolder(ctx context.Context, req CloneRequest) (io.ReadWriteCloser, error)
}

// CloneRequest asks for a folder with a clone.
type CloneRequest struct {
	Owner   string `json:"owner,omitempty"` // as in [FolderRequest]
	Name    string `json:"name"`            // of the folder
	Address string `json:"address"`         // URL[@REF] of the repository, without a password
}

// MaxCloneLine is the most bytes of a line of [Projects.CloneFolder].
const MaxCloneLine = 32 << 10

// CloneNews is what the agent says while it clones. One of its fields is set.
type CloneNews struct {
	Line   string         `json:"line,omitempty"` // what git printed
	Ask    *CloneQuestion `json:"ask,omitempty"`  // git waits for its answer
	Failed *Cause         `json:"failed,omitempty"`
	Done   bool           `json:"done,omitempty"`
}

// CloneQuestion is what git asks.
type CloneQuestion struct {
	Text   string `json:"text"`
	Secret bool   `json:"secret,omitempty"` // a password: not shown while it is typed
	Again  bool   `json:"again,omitempty"`  // the previous answer was not accepted
}

// CloneAnswer answers the last question. It is stored nowhere.
type CloneAnswer struct {
	Answer string `json:"answer"`
}

// ProjectRequest says which project is meant, and what the person has chosen.
type ProjectRequest struct {
	Path string `json:"path,omitempty"` // of the project's directory in the folder; empty: the folder itself
	File string `json:"file,omitempty"` // that decides, relative to the directory; empty: the first of [Project.Files]
	// Environment is the image that a generated Dockerfile extends, and that a project without a file uses.
	Environment string `json:"environment,omitempty"`
}

// ProjectBuild asks for the image of a project.
type ProjectBuild struct {
	ProjectRequest
	// Secrets are values of [Project.Secrets], and Logins the person's own for the registries of [Project.Bases]. They
	// are in memory until the build ends, and stored nowhere.
	Secrets []EnvVar        `json:"secrets,omitempty"`
	Logins  []RegistryLogin `json:"logins,omitempty"`
	// Proxy makes the steps reach the internet through the caller, who serves [Projects.LendConnection] with this token
	// until the build ends. It is in memory only, too. Empty: through the network of the machine.
	Proxy ProxyToken `json:"proxy,omitempty"`
}

// ProjectKind is how a project says what it needs.
type ProjectKind string

// The kinds of projects, in the order in which they are looked for.
const (
	ProjectDevContainer ProjectKind = "devcontainer" // devcontainer.json of the Development Containers Specification
	ProjectDockerfile   ProjectKind = "dockerfile"
	ProjectPackages     ProjectKind = "packages" // files that repo2docker reads, such as requirements.txt
	ProjectPlain        ProjectKind = "plain"    // it has no such file
)

// Project is what a project asks for.
type Project struct {
	Kind  ProjectKind `json:"kind"`
	File  string      `json:"file,omitempty"` // that decided, relative to the directory; empty: none
	Files []string    `json:"files"`          // all that could, the best first
	// Image is what its sessions use. It is named by the content of all that it is built from.
	Image      string   `json:"image"`
	Present    bool     `json:"present"`              // the image is on the machine
	Dockerfile string   `json:"dockerfile,omitempty"` // what is built; empty: the image is used as it is
	Generated  bool     `json:"generated"`            // the Dockerfile is Slipway's, not the project's
	Bases      []string `json:"bases"`                // images that the build extends
	Secrets    []string `json:"secrets,omitempty"`    // names of secrets that the Dockerfile mounts
	ProjectNeeds
	Left []ProjectLeft `json:"left,omitempty"`
}

// ProjectNeeds is what a launch takes over from a devcontainer.json.
type ProjectNeeds struct {
	// Setup is what a session runs after its start, see [Spec]. It is the project's code.
	Setup   string    `json:"setup,omitempty"`
	Env     []EnvVar  `json:"env,omitempty"`
	Ports   []int     `json:"ports,omitempty"`
	Minimum Resources `json:"minimum,omitzero"`
	// Accelerator is what it asks of the machine's devices.
	Accelerator gpu.Request `json:"accelerator,omitzero"`
	// Mounts has the project's directory first; empty: the folder is mounted at its usual place. Other folders of the
	// owner's may be among them, which the project's code then sees.
	Mounts []FolderMount `json:"mounts,omitempty"`
}

// ProjectLeft is something that a project asks for and does not get.
type ProjectLeft struct {
	What string `json:"what"` // the key or file that asks
	Why  Phrase `json:"why"`
}

// Build is the progress of a build. It is replaced, never changed.
type Build struct {
	Steps []BuildStep `json:"steps"` // in the order in which they began, [MaxBuildSteps] at most
	Log   string      `json:"log"`   // the end of what the steps printed, [MaxBuildLog] bytes at most
}

// The bounds of what is shown of a build.
const (
	MaxBuildSteps = 100
	MaxBuildLog   = 16 * gpu.KiB
)

// BuildStep is one step of a build.
type BuildStep struct {
	Name      string         `json:"name"`
	State     ImageWorkState `json:"state"`
	Cached    bool           `json:"cached,omitempty"` // it was done before and not repeated
	StartedAt *time.Time     `json:"startedAt,omitempty"`
	EndedAt   *time.Time     `json:"endedAt,omitempty"`
}

// ProjectRef is the reference of the image of a person's project, by the checksum of all that it is built from.
func ProjectRef(owner, name string, sum []byte) string {
	slug := strings.Trim(notSlug().ReplaceAllString(strings.ToLower(name), "-"), "-")
	slug = strings.Trim(slug[:min(len(slug), 40)], "-")
	return fmt.Sprintf("%s%s/%s:project-%x", customized, slugOf(owner), cmp.Or(slug, "project"), sum[:min(len(sum), 8)])
}

// ProjectOf returns the repository of a reference that [ProjectRef] made, which is that of one project of one person.
func ProjectOf(ref string) (repository string, ok bool) {
	repository, sum, ok := strings.Cut(ref, ":project-")
	if !ok || !strings.HasPrefix(ref, customized) || strings.Count(repository, "/") != 2 ||
		strings.Trim(sum, "0123456789abcdef") != "" {
		return "", false
	}
	return repository, true
}
