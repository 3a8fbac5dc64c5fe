package session

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Files reads and changes files: those of a running session, as its user sees them, and those of a folder. Failures are
// file_<operation>_<detail>; those of the file system have the details not-found, forbidden, already-exists, no-space,
// read-only, not-empty, wrong-kind, in-use and invalid.
type Files interface {
	// ListFiles returns a part of a directory, sorted by name without regard to case. Parts of uploads are not listed.
	//
	//rpc:method name=file.list effect=read args=place,list who=owner
	ListFiles(ctx context.Context, place Place, req ListRequest) (FileListing, error)
	// StatFile describes what a path leads to.
	//
	//rpc:method name=file.stat effect=read who=owner
	StatFile(ctx context.Context, place Place, path FilePath) (FileInfo, error)
	// ReadFile reads a regular file from an offset, which the caller closes; file_use_changed for another version.
	//
	//rpc:method name=file.read effect=read args=place,read who=owner audit=req.Path
	ReadFile(ctx context.Context, place Place, req ReadRequest) (io.ReadCloser, error)
	// ChecksumFile returns the SHA-256 of a regular file in hexadecimal.
	//
	//rpc:method name=file.checksum effect=read limit=checking reply=checksum who=owner
	ChecksumFile(ctx context.Context, place Place, path FilePath) (string, error)
	// MakeDirectory makes a directory, and its parents if asked to; else file_use_already-exists if it exists.
	//
	//rpc:method name=file.mkdir effect=once args=place,path,all? who=owner audit=path
	MakeDirectory(ctx context.Context, place Place, path FilePath, parents bool) error
	// MoveFile renames within a place. It never replaces what is at the new path.
	//
	//rpc:method name=file.move effect=once args=place,path,to? who=owner audit=from
	MoveFile(ctx context.Context, place Place, from, to FilePath) error
	// RemoveFile removes a file or an empty directory, or a directory with its contents.
	//
	//rpc:method name=file.remove effect=once limit=long args=place,path,all? who=owner audit=path
	RemoveFile(ctx context.Context, place Place, path FilePath, recursive bool) error
}

// Uploads makes what copies consist of: files, which are written in parts that can be resumed, links and attributes.
// Failures are those of [Files].
type Uploads interface {
	// UploadOffset returns how many bytes of an upload are stored, 0 if unknown. They outlive restarts of the agent.
	//
	//rpc:method name=file.offset effect=read args=place,upload reply=position who=owner
	UploadOffset(ctx context.Context, place Place, up Upload) (int64, error)
	// WriteUpload appends from at the upload's Offset, which must not lie beyond what has arrived (file_use_conflict),
	// and returns how many bytes have arrived then. What came before a failure stays.
	//
	//rpc:method name=file.write effect=once args=place,upload reply=position who=owner audit=up.Path
	WriteUpload(ctx context.Context, place Place, up Upload, from io.Reader) (int64, error)
	// FinishUpload makes the file of an upload appear at its path, whole, at once, and durable. It fails with
	// file_use_conflict for another size, file_use_changed for another checksum, and file_use_already-exists. It can be
	// repeated.
	//
	//rpc:method name=file.finish effect=again limit=checking args=place,finish who=owner audit=req.Path
	FinishUpload(ctx context.Context, place Place, req FinishRequest) (FileInfo, error)
	// DropUpload deletes an upload.
	//
	//rpc:method name=file.drop effect=again args=place,upload who=owner audit=up.Path
	DropUpload(ctx context.Context, place Place, up Upload) error
	// MakeLink makes a symbolic link. The target is stored as it is, whether or not it exists or lies outside of the
	// place. It fails with file_use_already-exists unless nothing, or a link with this target, is at the path.
	//
	//rpc:method name=file.link effect=again args=place,path,to who=owner audit=path
	MakeLink(ctx context.Context, place Place, path, target FilePath) error
	// SetAttributes changes the attributes of the file or directory that a path leads to, but not those of the root.
	//
	//rpc:method name=file.attributes effect=again args=place,path,attributes who=owner audit=path
	SetAttributes(ctx context.Context, place Place, path FilePath, attributes Attributes) error
}

// Place is whose files are meant: those of a running session, where relative paths begin at [Home], or those of a
// folder, where they begin at its root "/". Nothing outside of a folder is reached, also not through links.
type Place struct {
	Session ID       `json:"session,omitempty"`
	Kernel  string   `json:"kernel,omitempty"` // of the session; empty: main1
	Folder  FolderID `json:"folder,omitempty"`
}

// FilePath is a path, or a name, of bytes: UTF-8 is written as text, anything else as {"bytes": base64}.
type FilePath string

// MarshalJSON keeps every byte.
func (p FilePath) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(p)) {
		return json.Marshal(string(p))
	}
	return json.Marshal(rawPath{base64.StdEncoding.EncodeToString([]byte(p))})
}

// UnmarshalJSON reads both forms.
func (p *FilePath) UnmarshalJSON(data []byte) error {
	var raw rawPath
	if len(data) > 0 && data[0] == '{' {
		if err := json.Unmarshal(data, &raw); err != nil {
			return err
		}
		decoded, err := base64.StdEncoding.DecodeString(raw.Bytes)
		*p = FilePath(decoded)
		return err
	}
	return json.Unmarshal(data, (*string)(p))
}

type rawPath struct {
	Bytes string `json:"bytes"`
}

// FileKind is what a path leads to.
type FileKind string

// The kinds of files. What is none of the first two cannot be read.
const (
	KindFile      FileKind = "file"
	KindDirectory FileKind = "directory"
	KindOther     FileKind = "other"
)

// FileInfo describes one file, or what a link leads to; a link that leads nowhere is of the other kind.
type FileInfo struct {
	Name     FilePath  `json:"name"`
	Kind     FileKind  `json:"kind"`
	Link     bool      `json:"link,omitempty"`
	Target   FilePath  `json:"target,omitempty"` // where the link points, as it is stored; older agents do not say
	Size     int64     `json:"size"`             // bytes
	Mode     uint32    `json:"mode"`             // permissions
	Modified time.Time `json:"modified"`
	Version  string    `json:"version"` // changes when the content does
}

// MaxListed is the most entries of one listing.
const MaxListed = 10_000

// ListRequest asks for a part of a directory.
type ListRequest struct {
	Path  FilePath `json:"path"`
	After FilePath `json:"after,omitempty"` // the last name of the part before; empty: from the beginning
	Limit int      `json:"limit,omitempty"` // 0: [MaxListed]
}

// FileListing is a part of a directory.
type FileListing struct {
	Path    FilePath   `json:"path"` // absolute and clean
	Entries []FileInfo `json:"entries"`
	Total   int        `json:"total"` // entries of the whole directory
	More    bool       `json:"more,omitempty"`
}

// ReadRequest asks for a part of a file.
type ReadRequest struct {
	Path    FilePath `json:"path"`
	Offset  int64    `json:"offset,omitempty"`
	Length  int64    `json:"length,omitempty"`  // 0: to the end
	Version string   `json:"version,omitempty"` // empty: whatever it is now
}

// Upload names an upload by its path and a key, 1 to 64 letters and digits, that distinguishes uploads to one path.
type Upload struct {
	Path   FilePath `json:"path"`
	Key    string   `json:"key"`
	Offset int64    `json:"offset,omitempty"`
}

// Conflict is what to do with an existing file.
type Conflict string

// The conflicts. Keep-both gives the new file another name.
const (
	ConflictFail    Conflict = "fail"
	ConflictReplace Conflict = "replace"
	ConflictKeep    Conflict = "keep-both"
)

// FinishRequest ends an upload.
type FinishRequest struct {
	Upload
	Finish
}

// Finish says what an uploaded file must be.
type Finish struct {
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256,omitempty"`   // hexadecimal; empty: not compared
	Conflict Conflict  `json:"conflict,omitempty"` // of a file that is there already; empty: fail
	Mode     uint32    `json:"mode,omitempty"`     // permissions; 0: as new files have
	Modified time.Time `json:"modified,omitzero"`  // absent: now
}

// Attributes are what is stored of a file or directory beside its content.
type Attributes struct {
	Mode     uint32    `json:"mode"`              // permissions
	Modified time.Time `json:"modified,omitzero"` // absent: unchanged
}

// longestPath is the limit of Linux in bytes.
const longestPath = 4096

// CheckPath refuses a path that cannot exist.
func CheckPath(path FilePath) error {
	if strings.ContainsRune(string(path), 0) || len(path) > longestPath {
		return &Error{Code: CodeFileInvalid, Message: "Invalid path.",
			Hint: "Paths have at most 4096 bytes, none of which is zero."}
	}
	return nil
}

// Check says what is wrong with an upload.
func (u Upload) Check() error {
	if err := CheckPath(u.Path); err != nil {
		return err
	}
	plain := len(u.Key) >= 1 && len(u.Key) <= 64
	for _, r := range u.Key {
		plain = plain && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	}
	if !plain || u.Offset < 0 {
		return &Error{Code: CodeFileInvalid, Message: fmt.Sprintf("%q at %d is not an upload.",
			u.Key, u.Offset), Hint: "A key has 1 to 64 letters and digits, and an offset is not negative."}
	}
	return nil
}
