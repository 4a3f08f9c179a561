// Package accounts has the rules of the chat's accounts that need no database: names that
// look different to a reader, hashes of passwords, and limits for each client.
package accounts
