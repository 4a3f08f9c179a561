package redis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/semelgo/semel/store"
)

// SwapNoted takes the record and the tokens of the note from the change.
func (s *Store) SwapNoted(ctx context.Context, c store.Change, n store.Note) (store.SwapResult, error) {
	if err := c.Check(maxOutcome); err != nil {
		return store.SwapResult{Err: fmt.Errorf("swap %w", err)}, nil
	}
	words := appendText(appendText(appendToken(appendToken(nil, c.If), c.To.Token), n.Actor), n.Reason)
	of := &call{shard: s.shardOf(c.To.ID), name: "note", args: append(changeArgs(nil, &c), words)}
	err := s.run(ctx, true, of)
	var now float64
	if err == nil {
		now, err = clock(of.out)
	}
	if err != nil {
		return store.SwapResult{}, fmt.Errorf("swap with a note: %w", err)
	}
	return readResult(&c, of.out[1], now)
}

// Notes returns the notes of a record, also after it was purged.
func (s *Store) Notes(ctx context.Context, id store.ID) ([]store.Note, error) {
	c := &call{shard: s.shardOf(id), name: "notes", reads: true, args: []any{id[:]}}
	err := s.run(ctx, false, c)
	var now float64
	if err == nil {
		now, err = clock(c.out)
	}
	if err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	notes := make([]store.Note, 0, len(c.out)-1)
	for _, v := range c.out[1:] {
		text, _ := v.(string)
		n, err := readNote(id, []byte(text), now)
		if err != nil {
			return nil, fmt.Errorf("read notes: %w", err)
		}
		notes = append(notes, n)
	}
	return notes, nil
}

// readNote reads a note: its time, the tokens, and two texts after their lengths.
func readNote(id store.ID, b []byte, now float64) (store.Note, error) {
	const atActor = 8 + 2*tokenSize + 4
	if len(b) < atActor {
		return store.Note{}, errNote
	}
	n := store.Note{ID: id, From: readToken(string(b[8:])), To: readToken(string(b[8+tokenSize:]))}
	n.Age = micros(now - math.Float64frombits(binary.BigEndian.Uint64(b)))
	actor := int(binary.BigEndian.Uint32(b[atActor-4:]))
	if len(b) < atActor+actor+4 {
		return store.Note{}, errNote
	}
	n.Actor, n.Reason = string(b[atActor:atActor+actor]), string(b[atActor+actor+4:])
	return n, nil
}

var errNote = errors.New("a note has another form")
