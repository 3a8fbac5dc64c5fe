package api

import "slipway/backend/session"

// FileInfo describes a file of a session, or the target of a link.
type FileInfo struct {
	session.FileInfo
	Name    string `json:"name"`
	Encoded string `json:"encoded,omitempty"` // the name's bytes, percent-encoded, if they are not text
	Mode    string `json:"mode"`              // permissions in octal, such as 644
}

// FileListing is a part of a directory, sorted by name, ignoring case.
type FileListing struct {
	session.FileListing
	Path    string     `json:"path"` // absolute
	Entries []FileInfo `json:"entries"`
}

// Checksum is the checksum of a file's content.
type Checksum struct {
	SHA256 string `json:"sha256"` // hexadecimal
}

// UploadState is the progress of an upload.
type UploadState struct {
	Offset int64 `json:"offset"` // bytes received
}

// FinishRequest says what an uploaded file must be.
type FinishRequest struct {
	session.Finish
	Mode string `json:"mode,omitempty"` // permissions in octal; empty: 644
}
