import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.gradle.api.Action;
import org.gradle.api.Project;
import org.gradle.api.Task;
import org.gradle.api.tasks.compile.AbstractCompile;
import org.gradle.testfixtures.ProjectBuilder;

/**
 * Runs tasks of build scripts in this process, as Gradle's daemon does: Gradle ANSWERS; see Resident.
 *
 * <p>The arguments of a command are HOME [--refresh-dependencies] NAME TASK...; HOME is the user's home, the script is
 * build.gradle in the working directory, which is the project NAME. Gradle's own program needs a distribution; this has
 * the same code for resolving and publishing.
 */
public final class Gradle {
    private static PrintStream printed;

    private Gradle() {}

    public static void main(String[] arguments) throws IOException {
        // Once, since Gradle keeps the stream that it finds.
        System.setOut(
                new PrintStream(
                        new OutputStream() {
                            @Override
                            public void write(int value) {
                                printed.write(value);
                            }

                            @Override
                            public void write(byte[] values, int start, int size) {
                                printed.write(values, start, size);
                            }
                        },
                        true));
        Resident.serve(Gradle::run, arguments[0]);
    }

    private static int run(String folder, String[] arguments, PrintStream out) {
        printed = out;
        try {
            build(new File(folder), arguments);
            return 0;
        } catch (Throwable failure) {
            for (Throwable each = failure; each != null; each = each.getCause()) {
                System.out.println("* " + each.getMessage());
            }
            return 1;
        }
    }

    private static void build(File folder, String[] arguments) {
        boolean refresh = arguments[1].equals("--refresh-dependencies");
        int first = refresh ? 2 : 1;
        Project project =
                ProjectBuilder.builder()
                        .withProjectDir(folder)
                        .withGradleUserHomeDir(new File(arguments[0], "gradle"))
                        .withName(arguments[first])
                        .build();
        project.getGradle().getStartParameter().setRefreshDependencies(refresh);
        project.apply(Map.of("from", "build.gradle"));
        Set<Task> done = new HashSet<>();
        for (int each = first + 1; each < arguments.length; each++) {
            execute(project.getTasks().getByName(arguments[each]), done);
        }
        System.out.println("gradle " + project.getGradle().getGradleVersion() + " is done");
    }

    private static void execute(Task task, Set<Task> done) {
        if (!done.add(task)) {
            return;
        }
        for (Task needed : task.getTaskDependencies().getDependencies(task)) {
            execute(needed, done);
        }
        if (task instanceof AbstractCompile) {
            return; // there are no sources; incremental tasks need the engine of a whole build
        }
        System.out.println("> Task " + task.getName());
        for (File output : task.getOutputs().getFiles()) {
            output.getParentFile().mkdirs();
        }
        for (Action<? super Task> action : task.getActions()) {
            action.execute(task);
        }
    }
}
