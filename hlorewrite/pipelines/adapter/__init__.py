"""The core's interface to programs of several meshes (``passmanager.programs.ProgramAdapter``)."""

from hlorewrite.pipelines.adapter.by_mesh import run_by_mesh as run_by_mesh
from hlorewrite.pipelines.adapter.collectives import collectives_of_program as collectives_of_program
from hlorewrite.pipelines.adapter.collectives import pieces_of_program as pieces_of_program
from hlorewrite.pipelines.adapter.partition import expose_program as expose_program
from hlorewrite.pipelines.adapter.sequential import sequential as sequential
