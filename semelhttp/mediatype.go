package semelhttp

import "mime"

// mediaType returns the normal form of a Content-Type. An invalid Content-Type is
// returned unchanged.
func mediaType(contentType string) string {
	if contentType == "application/json" { // the comparison is faster
		return contentType
	}
	name, params, err := mime.ParseMediaType(contentType)
	if normal := mime.FormatMediaType(name, params); err == nil && normal != "" {
		return normal
	}
	return contentType
}
