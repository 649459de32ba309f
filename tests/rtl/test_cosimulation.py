"""The exported Verilog in Icarus Verilog, on the vectors that the Amaranth simulation runs."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from array_catalogue import operands

from rtl.config import MatmulConfig
from rtl.simulation.streams import pack, unpack
from rtl.tiling import assemble, cut
from rtl.verilog import export

pytestmark = pytest.mark.skipif(
    shutil.which("iverilog") is None, reason="Icarus Verilog is not installed (iverilog)"
)

BENCH = """
`timescale 1ns/1ns
module bench;
  localparam WEIGHTS = {weights}, VECTORS = {vectors}, PAUSE = {pause};
  reg clk = 0, rst = 1;
  reg [{weight_bits}-1:0] weight [0:WEIGHTS-1];
  reg [{vector_bits}:0] vector [0:VECTORS-1];
  integer w = 0, v = 0, r = 0, cycle = 0, first = -1, seed = 1;
  reg w_valid = 0, v_valid = 0, r_ready = 0;
  wire w_ready, v_ready, r_valid, r_last;
  wire [{result_bits}-1:0] result;

  systolic_array dut (
    .clk(clk), .rst(rst),
    .s_axis_weights_tdata(weight[w]), .s_axis_weights_tvalid(w_valid),
    .s_axis_weights_tready(w_ready),
    .s_axis_activations_tdata(vector[v][{vector_bits}-1:0]),
    .s_axis_activations_tlast(vector[v][{vector_bits}]),
    .s_axis_activations_tvalid(v_valid), .s_axis_activations_tready(v_ready),
    .m_axis_results_tdata(result), .m_axis_results_tlast(r_last),
    .m_axis_results_tvalid(r_valid), .m_axis_results_tready(r_ready));

  always #5 clk = ~clk;
  // Inputs change at the falling edge, so no rising edge races with them.
  always @(negedge clk) if (!rst) begin
    w_valid <= w < WEIGHTS && (w_valid || $urandom(seed) % 100 >= PAUSE);
    v_valid <= v < VECTORS && (v_valid || $urandom(seed) % 100 >= PAUSE);
    r_ready <= $urandom(seed) % 100 >= PAUSE;
  end
  always @(posedge clk) if (!rst) begin
    cycle <= cycle + 1;
    if (w_valid && w_ready) begin
      if (first < 0) first <= cycle;
      w <= w + 1; w_valid <= 0;
    end
    if (v_valid && v_ready) begin v <= v + 1; v_valid <= 0; end
    if (r_valid && r_ready) begin
      $display("result %h %b", result, r_last);
      r <= r + 1;
      if (r == VECTORS - 1) begin
        $display("cycles %0d", cycle - first + 1);
        $finish;
      end
    end
    if (cycle > 100000) begin $display("hang"); $finish; end
  end
  initial begin
    $readmemh("weights.hex", weight);
    $readmemh("vectors.hex", vector);
    repeat (3) @(negedge clk);
    rst = 0;
  end
endmodule
"""


def write_hex(path, words):
    path.write_text("".join(f"{word:x}\n" for word in words))


@pytest.mark.parametrize("pause", [0, 40], ids=["no stalls", "random stalls"])
@pytest.mark.parametrize(
    ("rows", "cols", "shape"),
    [(1, 1, (3, 2, 2)), (3, 5, (4, 7, 9)), (8, 8, (11, 16, 9)), (4, 2, (2, 12, 4))],
)
def test_verilog_gives_the_same_product_in_the_same_cycles(rows, cols, shape, pause, tmp_path):
    config = MatmulConfig(rows, cols)
    m, k, n = shape
    a, b = operands(m, k, n, seed=7)
    a[0], b[:, 0] = -128, -128
    tiles = list(cut(a, b, rows, cols))
    words = [
        pack(vector) | (i == m - 1) << 8 * rows
        for tile in tiles
        for i, vector in enumerate(tile.activations)
    ]
    export(config, tmp_path)
    write_hex(tmp_path / "weights.hex", (pack(beat) for tile in tiles for beat in tile.beats))
    write_hex(tmp_path / "vectors.hex", words)
    (tmp_path / "bench.v").write_text(
        BENCH.format(
            weights=rows * len(tiles),
            vectors=len(words),
            pause=pause,
            weight_bits=8 * cols,
            vector_bits=8 * rows,
            result_bits=32 * cols,
        )
    )
    build = ["iverilog", "-g2005", "-o", "bench", "bench.v", "systolic_array.v"]
    subprocess.run(build, check=True, cwd=tmp_path, timeout=60)
    output = subprocess.run(
        ["vvp", "-n", "bench"], check=True, cwd=tmp_path, capture_output=True, text=True, timeout=60
    ).stdout

    results = re.findall(r"result ([0-9a-f]+) ([01])", output)
    assert [last for _, last in results] == (["0"] * (m - 1) + ["1"]) * len(tiles)
    vectors = np.stack([unpack(int(word, 16), cols, np.int32) for word, _ in results])
    product = assemble(m, n, tiles, vectors.reshape(len(tiles), m, cols))
    assert np.array_equal(product, config.reference(a, b))
    (cycles,) = map(int, re.findall(r"cycles (\d+)", output))
    predicted = config.cycles(m, k, n)
    assert cycles > predicted if pause else cycles == predicted
