// Command tinymodel writes a language model with random weights to the file that is named: GGUF version 3, the
// architecture of Llama, as llama.cpp and everything built on it loads it. It speaks in words that mean nothing. The
// bytes are the same each time, and nothing is downloaded.
package main

import (
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"strings"
)

// Sizes of the network.
const (
	width   = 64
	heads   = 4
	blocks  = 2
	inner   = 2 * width
	context = 4096
)

// vocabulary is what the model says.
const vocabulary = `a all and at back black blue boat bread by calm came cold day deep door down east end far fast few
fire fish five for found four from gold good grass green grey ground half hand hard head hear high
hill hold home house in iron keep lake land large last late leaf left light line little long look
low made man many map moon morning mountain move near never new night nine north not of old on one
open or out over paper path people place rain read red right river road rock room round sail salt
sand sea second seed seven ship shore silver six sky slow small snow some song south star stay stone
storm street summer sun table ten that the then they this three time to today town tree turn two
under up village walk wall warm water west white wind window winter with wood word work write year
yellow`

// Kinds of values of metadata, and of tokens, by their numbers in GGUF.
const (
	kindUint32  = 4
	kindInt32   = 5
	kindFloat32 = 6
	kindBool    = 7
	kindString  = 8
	kindArray   = 9

	tokenNormal  = 1
	tokenUnknown = 2
	tokenControl = 3
	tokenByte    = 6

	alignment = 32
)

// bytesOf appends values as GGUF writes them: little-endian, texts with their length first.
func bytesOf(values ...any) []byte {
	var out []byte
	for _, value := range values {
		if text, ok := value.(string); ok {
			out = append(binary.LittleEndian.AppendUint64(out, uint64(len(text))), text...)
			continue
		}
		next, err := binary.Append(out, binary.LittleEndian, value)
		if err != nil {
			log.Fatal(err)
		}
		out = next
	}
	return out
}

func padded(data []byte) []byte {
	return append(data, make([]byte, (alignment-len(data)%alignment)%alignment)...)
}

// tokens are the pieces that texts are made of: three for control, one for each byte, and each word with all of its
// beginnings, since a tokenizer joins words of their pieces.
type tokens struct {
	pieces []string
	scores []float32
	kinds  []int32
	words  map[int]bool // which of them are whole words
}

func newTokens() *tokens {
	t := &tokens{words: map[int]bool{}}
	at := map[string]int{}
	add := func(piece string, score float32, kind int32) int {
		if i, there := at[piece]; there {
			return i
		}
		at[piece] = len(t.pieces)
		t.pieces, t.scores, t.kinds = append(t.pieces, piece), append(t.scores, score), append(t.kinds, kind)
		return at[piece]
	}
	add("<unk>", 0, tokenUnknown)
	add("<s>", 0, tokenControl)
	add("</s>", 0, tokenControl)
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b), 0, tokenByte)
	}
	normal := func(piece string) int { return add(piece, float32(len(piece))-100, tokenNormal) }
	const space = "\u2581"
	normal(space)
	for letter := 'a'; letter <= 'z'; letter++ {
		normal(string(letter))
	}
	for _, word := range strings.Fields(vocabulary) {
		for n := 1; n < len(word); n++ {
			normal(space + word[:n])
		}
		t.words[normal(space+word)] = true
	}
	return t
}

// model collects the parts of a file.
type model struct {
	random  *rand.Rand
	entries [][]byte // of the metadata
	tensors [][]byte // their descriptions
	data    []byte
}

func (m *model) set(name string, kind uint32, values ...any) {
	m.entries = append(m.entries, append(bytesOf(name, kind), bytesOf(values...)...))
}

// add describes and appends a tensor of float32. The first dimension varies fastest.
func (m *model) add(name string, weights []float32, dimensions ...uint64) {
	const float32s = uint32(0)
	m.tensors = append(m.tensors,
		bytesOf(name, uint32(len(dimensions)), dimensions, float32s, uint64(len(m.data))))
	m.data = padded(append(m.data, bytesOf(weights)...))
}

// norm adds a normalization that changes nothing.
func (m *model) norm(name string) {
	weights := make([]float32, width)
	for i := range weights {
		weights[i] = 1
	}
	m.add(name+".weight", weights, width)
}

func (m *model) matrix(name string, in, out int, spread float64, scale func(row int) float64) {
	weights := make([]float32, 0, in*out)
	for row := range out {
		for range in {
			weights = append(weights, float32(m.random.NormFloat64()*spread*scale(row)))
		}
	}
	m.add(name+".weight", weights, uint64(in), uint64(out))
}

func (m *model) weights(t *tokens) {
	one := func(int) float64 { return 1 }
	spread := 1 / math.Sqrt(width)
	m.matrix("token_embd", width, len(t.pieces), 1, one)
	for i := range blocks {
		block := fmt.Sprintf("blk.%d.", i)
		m.norm(block + "attn_norm")
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			m.matrix(block+name, width, width, spread, one)
		}
		m.norm(block + "ffn_norm")
		m.matrix(block+"ffn_gate", width, inner, spread, one)
		m.matrix(block+"ffn_up", width, inner, spread, one)
		m.matrix(block+"ffn_down", inner, width, spread, one)
	}
	m.norm("output_norm")
	// Whole words are louder than the pieces that they are made of.
	m.matrix("output", width, len(t.pieces), 4*spread, func(row int) float64 {
		if t.words[row] {
			return 1
		}
		return 0.1
	})
}

func (m *model) metadata(t *tokens) {
	const llama = "llama."
	m.set("general.architecture", kindString, "llama")
	m.set("general.name", kindString, "tiny")
	m.set("general.alignment", kindUint32, uint32(alignment))
	m.set(llama+"vocab_size", kindUint32, uint32(len(t.pieces)))
	m.set(llama+"context_length", kindUint32, uint32(context))
	m.set(llama+"embedding_length", kindUint32, uint32(width))
	m.set(llama+"block_count", kindUint32, uint32(blocks))
	m.set(llama+"feed_forward_length", kindUint32, uint32(inner))
	m.set(llama+"attention.head_count", kindUint32, uint32(heads))
	m.set(llama+"attention.head_count_kv", kindUint32, uint32(heads))
	m.set(llama+"rope.dimension_count", kindUint32, uint32(width/heads))
	m.set(llama+"attention.layer_norm_rms_epsilon", kindFloat32, float32(1e-5))
	const tokenizer = "tokenizer.ggml."
	m.set(tokenizer+"model", kindString, "llama")
	pieces := make([]any, len(t.pieces))
	for i, piece := range t.pieces {
		pieces[i] = piece
	}
	m.set(tokenizer+"tokens", kindArray, append([]any{uint32(kindString), uint64(len(pieces))}, pieces...)...)
	m.set(tokenizer+"scores", kindArray, uint32(kindFloat32), uint64(len(t.scores)), t.scores)
	m.set(tokenizer+"token_type", kindArray, uint32(kindInt32), uint64(len(t.kinds)), t.kinds)
	m.set(tokenizer+"unknown_token_id", kindUint32, uint32(0))
	m.set(tokenizer+"bos_token_id", kindUint32, uint32(1))
	m.set(tokenizer+"eos_token_id", kindUint32, uint32(2))
	m.set(tokenizer+"add_bos_token", kindBool, true)
	m.set("tokenizer.chat_template", kindString,
		"{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:")
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: tinymodel FILE")
	}
	t, m := newTokens(), &model{random: rand.New(rand.NewPCG(1, 2))}
	m.metadata(t)
	m.weights(t)
	file := append([]byte("GGUF"), bytesOf(uint32(3), uint64(len(m.tensors)), uint64(len(m.entries)))...)
	for _, part := range append(m.entries, m.tensors...) {
		file = append(file, part...)
	}
	if err := os.WriteFile(os.Args[1], append(padded(file), m.data...), 0o644); err != nil {
		log.Fatal(err)
	}
}
