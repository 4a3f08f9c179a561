package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/semelhttp"
)

// The codes of the chat's own problems. Package semelhttp has those of keys and
// records.
const (
	codeInvalid       = "invalid"
	codeTooLarge      = "body_too_large"
	codeNoToken       = "unauthenticated"
	codeNotMember     = "not_a_member"
	codeNotOwner      = "not_the_owner"
	codeNotFound      = "not_found"
	codeNotAllowed    = "method_not_allowed"
	codeUnknownMember = "unknown_member"
	codeUnavailable   = "unavailable"
	codeNoPayments    = "no_payments"
	codeDeclined      = "payment_declined"
	codeUnknown       = "outcome_unknown"
	codeNameTaken     = "name_taken"
	codeCredentials   = "wrong_credentials"
	codeTooMany       = "too_many_requests"
	codeMediaType     = "unsupported_media_type"
	codeNotAuthor     = "not_the_author"
)

// about returns the status and the title of a code.
func about(code string) (status int, title string) {
	switch code {
	case codeInvalid:
		return http.StatusBadRequest, "The request is invalid"
	case codeTooLarge:
		return http.StatusRequestEntityTooLarge, "The body is too large"
	case codeNoToken:
		return http.StatusUnauthorized, "The request has no valid credentials"
	case codeNotMember:
		return http.StatusForbidden, "Only members of the group may do this"
	case codeNotOwner:
		return http.StatusForbidden, "Only the owner of the group may do this"
	case codeNotFound:
		return http.StatusNotFound, "The resource does not exist"
	case codeNotAllowed:
		return http.StatusMethodNotAllowed, "The resource does not allow this method"
	case codeUnknownMember:
		return http.StatusUnprocessableEntity, "A member does not exist"
	case codeUnavailable:
		return http.StatusServiceUnavailable, "The service is temporarily unavailable"
	case codeNoPayments:
		return http.StatusNotImplemented, "This server does not accept payments"
	case codeDeclined:
		return http.StatusPaymentRequired, "The payment was declined"
	case codeUnknown:
		return http.StatusServiceUnavailable, "The outcome of the request is unknown"
	case codeNameTaken:
		return http.StatusConflict, "The name is taken"
	case codeCredentials:
		return http.StatusUnauthorized, "The name or the password is wrong"
	case codeTooMany:
		return http.StatusTooManyRequests, "There were too many requests"
	case codeMediaType:
		return http.StatusUnsupportedMediaType, "The body is not application/json"
	case codeNotAuthor:
		return http.StatusForbidden, "Only the author of the message, or the owner of the group for a deletion, may do this"
	default:
		return 0, ""
	}
}

// problem returns a problem about a field of the request.
func problem(code, field, format string, args ...any) *semelhttp.Problem {
	status, title := about(code)
	return &semelhttp.Problem{
		Type: semelhttp.DefaultProblemBase + code, Title: title, Status: status,
		Detail: fmt.Sprintf(format, args...), Code: code, Field: field,
	}
}

// problemOf returns the problem of an error of the chat's own code. An error
// without a problem of its own, a failing database for instance, is temporary:
// the client may retry. Its cause goes to the log, not to the client.
func problemOf(err error) *semelhttp.Problem {
	var own *semelhttp.Problem
	if errors.As(err, &own) {
		return own
	}
	var unknown *chatdb.UnknownUsersError
	if errors.As(err, &unknown) {
		return problem(codeUnknownMember, fieldOf(unknown), "%s", unknownUsers(unknown))
	}
	switch {
	case errors.Is(err, chatdb.ErrNotMember):
		return problem(codeNotMember, "id", "You do not belong to the group.")
	case errors.Is(err, chatdb.ErrNotOwner):
		return problem(codeNotOwner, "id", "The group is not yours.")
	case errors.Is(err, chatdb.ErrNotAuthor):
		return problem(codeNotAuthor, "seq", "The message is not yours.")
	case errors.Is(err, chatdb.ErrNotFound):
		return problem(codeNotFound, "id", "There is no such group or message.")
	}
	if errors.Is(err, errCommit) {
		return problem(codeUnknown, "", "The database did not report whether the change was made. Check the current state before you retry.")
	}
	p := problem(codeUnavailable, "", "Nothing was done. Retry the request.")
	p.RetryAfter = time.Second
	return p
}

// unknownUsers lists the users that do not exist.
func unknownUsers(e *chatdb.UnknownUsersError) string {
	all := slices.Clone(e.Names)
	for _, id := range e.IDs {
		all = append(all, fmt.Sprint(id))
	}
	return "There is no user " + strings.Join(all, ", ") + "."
}

// problemPages serves the documentation of the problem types.
func problemPages(w http.ResponseWriter, r *http.Request) {
	status, title := about(r.PathValue("code"))
	switch r.PathValue("code") {
	case codeNoToken, codeTooLarge, codeUnavailable, codeUnknown:
		status = 0 // semelhttp has pages for these
	}
	if status == 0 {
		semelhttp.Problems().ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, "%s (status %d)\n\n%s.\n", r.PathValue("code"), status, title)
}

// errCommit means that the outcome of a commit is unknown.
var errCommit = errors.New("commit")

// The fields of members.
const (
	fieldMemberIDs   = "member_ids"
	fieldMemberNames = "member_names"
)

// fieldOf returns the field that has the unknown users.
func fieldOf(e *chatdb.UnknownUsersError) string {
	if len(e.Names) > 0 {
		return fieldMemberNames
	}
	return fieldMemberIDs
}
