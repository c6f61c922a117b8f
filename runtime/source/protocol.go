package source

import (
	"encoding/json"
	"fmt"
)

// ReaderEvent is what a reader sends to its coordinator.
type ReaderEvent struct {
	Register bool `json:",omitempty"` // it is there
	Request  bool `json:",omitempty"` // it wants a split
}

// CoordinatorEvent is what a coordinator sends to a reader.
type CoordinatorEvent struct {
	Splits [][]byte `json:",omitempty"`
	IDs    []string `json:",omitempty"` // of the splits
	NoMore bool     `json:",omitempty"`
}

// EncodeReaderEvent gives the bytes of an event.
func EncodeReaderEvent(e ReaderEvent) []byte { return encode(e) }

// EncodeCoordinatorEvent gives the bytes of an event.
func EncodeCoordinatorEvent(e CoordinatorEvent) []byte { return encode(e) }

func encode(e any) []byte {
	b, err := json.Marshal(e)
	if err != nil {
		panic("source: " + err.Error()) // neither type can fail
	}
	return b
}

// DecodeReaderEvent reads what EncodeReaderEvent wrote.
func DecodeReaderEvent(b []byte) (e ReaderEvent, err error) {
	err = decode(b, &e)
	return e, err
}

// DecodeCoordinatorEvent reads what EncodeCoordinatorEvent wrote.
func DecodeCoordinatorEvent(b []byte) (e CoordinatorEvent, err error) {
	err = decode(b, &e)
	return e, err
}

func decode(b []byte, to any) error {
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("source: malformed event: %w", err)
	}
	return nil
}
