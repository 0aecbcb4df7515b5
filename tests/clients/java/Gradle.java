import java.io.File;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.gradle.api.Action;
import org.gradle.api.Project;
import org.gradle.api.Task;
import org.gradle.api.tasks.compile.AbstractCompile;
import org.gradle.testfixtures.ProjectBuilder;

/**
 * Runs tasks of a build script in this process: Gradle [--refresh-dependencies] NAME TASK...
 *
 * <p>The script is build.gradle in the working directory, which is the project NAME. Gradle's own program needs a
 * distribution; this has the same code for resolving and publishing.
 */
public final class Gradle {
    private Gradle() {}

    public static void main(String[] arguments) {
        int status = 1;
        try {
            run(arguments);
            status = 0;
        } catch (Throwable failure) {
            for (Throwable each = failure; each != null; each = each.getCause()) {
                System.out.println("* " + each.getMessage());
            }
        } finally {
            System.out.flush();
            Runtime.getRuntime().halt(status); // its services keep threads
        }
    }

    private static void run(String[] arguments) {
        boolean refresh = arguments[0].equals("--refresh-dependencies");
        int first = refresh ? 1 : 0;
        File folder = new File("").getAbsoluteFile();
        Project project =
                ProjectBuilder.builder()
                        .withProjectDir(folder)
                        .withGradleUserHomeDir(new File(System.getProperty("user.home"), "gradle"))
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
